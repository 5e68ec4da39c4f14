import pytest

from counterfoil.chain.contracts import SessionState
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher, check_next, check_session, is_due

SESSION = "0x" + "ab" * 32
OPERATOR = "0x" + "2" * 40


def session(**changes):
    fields = {
        "client": "0x" + "1" * 40,
        "operator": OPERATOR,
        "signer": "0x" + "1" * 40,
        "service_id": 4,
        "node_id": 3,
        "price": 100,
        "deposit": 350,
        "expires_at": 1000,
        "closes_at": 0,
        "status": 1,
        "paid": 0,
        "calls": 0,
        "settled_at": 0,
    }
    return SessionState(**(fields | changes))


def voucher(amount, calls):
    return Voucher(SESSION, amount, calls, b"\x01" * 65)


@pytest.mark.parametrize(
    ("changes", "now", "refusal"),
    [
        ({"status": 0}, 0, Refusal.UNKNOWN_SESSION),
        ({"node_id": 5}, 0, Refusal.NOT_OURS),
        ({"operator": "0x" + "9" * 40}, 0, Refusal.NOT_OURS),
        ({"status": 2}, 0, Refusal.NOT_OPEN),
        ({"status": 3}, 0, Refusal.NOT_OPEN),
        ({}, 1000, Refusal.EXPIRED),
    ],
)
def test_check_session__with_one_we_do_not_serve__refuses_by_its_name(changes, now, refusal):
    with pytest.raises(RefusedError) as refused:
        check_session(session(**changes), 3, OPERATOR, now)
    assert refused.value.refusal is refusal


def test_check_session__in_its_last_second__passes():
    check_session(session(), 3, OPERATOR, 999)


@pytest.mark.parametrize(
    ("last", "offered", "refusal"),
    [
        (None, (200, 2), Refusal.WRONG_CALLS),
        ((100, 1), (100, 1), Refusal.WRONG_CALLS),
        ((200, 2), (100, 1), Refusal.WRONG_CALLS),
        ((100, 1), (199, 2), Refusal.UNDERPAID),
        ((300, 3), (400, 4), Refusal.ABOVE_DEPOSIT),
        (None, (351, 1), Refusal.ABOVE_DEPOSIT),
    ],
)
def test_check_next__with_a_voucher_that_does_not_pay_for_the_next_call__refuses(last, offered, refusal):
    with pytest.raises(RefusedError) as refused:
        check_next(session(), last and voucher(*last), voucher(*offered))
    assert refused.value.refusal is refusal


@pytest.mark.parametrize(("last", "offered"), [(None, (100, 1)), ((100, 1), (200, 2)), ((200, 2), (350, 3))])
def test_check_next__with_one_call_more_paid_within_the_deposit__passes(last, offered):
    check_next(session(), last and voucher(*last), voucher(*offered))


def test_check_next__of_a_free_service__takes_amount_0():
    check_next(session(price=0, deposit=0), voucher(0, 1), voucher(0, 2))


@pytest.mark.parametrize(
    ("status", "now", "due"),
    [(0, 2000, False), (1, 999, False), (1, 1000, True), (2, 0, True), (3, 0, True)],
)
def test_is_due__of_a_session__once_it_closes_or_expires(status, now, due):
    assert is_due(session(status=status), now) is due
