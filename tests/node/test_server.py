"""Which calls a node takes, over real HTTP on a real chain."""

import pytest

from tests.support.caller import Caller, error

MAX_BODY = 2**20


def book_of(scene, operator="olga"):
    return scene.nodes[operator].book


def test_call__with_the_next_voucher__is_served(caller):
    assert caller.call(1).json() == {"echo": "hello"}
    assert caller.call(2).json() == {"echo": "hello"}


def test_call__signed_by_somebody_else__is_refused(caller, up):
    assert error(caller.call(1, signer="mallory")) == (402, "bad_signature")
    assert up.got == []


def test_call__for_a_session_that_does_not_exist__is_refused(caller):
    assert error(caller.call(1, session_id="0x" + "00" * 32)) == (409, "unknown_session")


def test_call__for_another_nodes_session__is_refused(caller, scene):
    other = Caller(scene.world, scene.node("nora"))
    assert error(caller.call(1, session_id=other.session_id)) == (409, "not_ours")


def test_call__after_a_request_to_close__is_refused(caller):
    caller.close()
    assert error(caller.call(1)) == (409, "not_open")


@pytest.mark.parametrize(("calls", "amount", "refusal"), [(2, 200, "wrong_calls"), (1, 99, "underpaid")])
def test_call__with_a_voucher_that_does_not_pay_for_the_next_call__is_refused(caller, up, calls, amount, refusal):
    from counterfoil.node.wire import voucher_headers

    assert error(caller.send("/call", voucher_headers(caller.voucher(amount, calls)))) == (402, refusal)
    assert up.got == []


def test_call__above_the_deposit__is_refused_and_the_last_voucher_kept(caller):
    from counterfoil.node.wire import voucher_headers

    assert caller.call(1).status_code == 200
    above = caller.voucher(caller.state().deposit + 1, 2)
    assert error(caller.send("/call", voucher_headers(above))) == (402, "above_deposit")
    assert caller.settle(caller.price, 1).json()["paid"] == str(caller.price)


def test_call__going_back__is_refused_and_the_last_voucher_kept(caller):
    assert [caller.call(number).status_code for number in (1, 2, 3)] == [200, 200, 200]
    assert error(caller.call(2)) == (402, "wrong_calls")
    assert caller.settle().json()["paid"] == str(3 * caller.price)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("Counterfoil-Session", "0x12"),
        ("Counterfoil-Session", "0x" + "AB" * 32),
        ("Counterfoil-Amount", "-1"),
        ("Counterfoil-Amount", "1e3"),
        ("Counterfoil-Amount", "9" * 40),
        ("Counterfoil-Calls", "01"),
        ("Counterfoil-Signature", "0x" + "zz" * 65),
        ("Counterfoil-Signature", ""),
    ],
)
def test_call__with_a_malformed_header__names_it(caller, header, text):
    answer = caller.call(1, headers={header: text})
    assert error(answer) == (400, "malformed")
    assert header in answer.json()["error"]["message"]


def test_call__with_a_body_over_the_limit__is_refused(caller):
    assert error(caller.call(1, body=b"x" * (MAX_BODY + 1))) == (400, "malformed")
    assert caller.call(1).status_code == 200
