import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.chain.contracts import SessionState
from counterfoil.node.vouchers import (
    Refusal,
    RefusedError,
    Voucher,
    above_limit,
    check_confirmed,
    check_next,
    check_session,
    is_due,
    settle_at,
)

SESSION = "0x" + "ab" * 32
OPERATOR = "0x" + "2" * 40
amounts = st.integers(0, 2**128 - 1)
times = st.integers(0, 2**33)


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


def refusal_of(check, *arguments):
    try:
        check(*arguments)
    except RefusedError as error:
        return error.refusal
    return None


@pytest.mark.parametrize(
    ("changes", "now", "refusal"),
    [
        ({"status": 0}, 0, Refusal.UNKNOWN_SESSION),
        ({"node_id": 5}, 0, Refusal.NOT_OURS),
        ({"operator": "0x" + "9" * 40}, 0, Refusal.NOT_OURS),
        ({"status": 2}, 0, Refusal.NOT_OPEN),
        ({"status": 3}, 0, Refusal.NOT_OPEN),
        ({}, 1000, Refusal.EXPIRED),
        ({}, 999, None),
    ],
)
def test_check_session__with_one_we_do_not_serve__refuses_by_its_name(changes, now, refusal):
    assert refusal_of(check_session, session(**changes), 3, OPERATOR, now) is refusal


@pytest.mark.parametrize(
    ("changes", "amount", "refusal"),
    [
        ({"status": 0}, 0, Refusal.UNCONFIRMED),
        ({"operator": "0x" + "9" * 40}, 0, Refusal.UNCONFIRMED),
        ({}, 351, Refusal.UNCONFIRMED),
        ({}, 350, None),
    ],
)
def test_check_confirmed__with_less_than_the_amount_so_deep__refuses(changes, amount, refusal):
    assert refusal_of(check_confirmed, session(**changes), OPERATOR, amount, 1) is refusal


@pytest.mark.parametrize(
    ("last", "offered", "refusal"),
    [
        (None, (200, 2), Refusal.WRONG_CALLS),
        ((100, 1), (100, 1), Refusal.WRONG_CALLS),
        ((200, 2), (100, 1), Refusal.WRONG_CALLS),
        ((100, 1), (199, 2), Refusal.UNDERPAID),
        ((250, 1), (200, 2), Refusal.UNDERPAID),
        ((300, 3), (400, 4), Refusal.ABOVE_DEPOSIT),
        (None, (351, 1), Refusal.ABOVE_DEPOSIT),
        (None, (100, 1), None),
        ((100, 1), (200, 2), None),
        ((200, 2), (350, 3), None),
    ],
)
def test_check_next__with_a_voucher__takes_only_one_call_more_that_is_paid_within_the_deposit(last, offered, refusal):
    assert refusal_of(check_next, session(), last and voucher(*last), voucher(*offered)) is refusal


@given(price=amounts, deposit=amounts, offered=st.lists(st.tuples(amounts, st.integers(0, 6)), max_size=12))
def test_check_next__whatever_is_offered__keeps_a_last_voucher_that_pays_within_the_deposit(price, deposit, offered):
    state, last = session(price=price, deposit=deposit), None
    for amount, calls in offered:
        if refusal_of(check_next, state, last, voucher(amount, calls)) is None:
            assert calls == (last.calls if last else 0) + 1
            assert amount >= (last.amount if last else 0)
            last = voucher(amount, calls)
    assert last is None or price * last.calls <= last.amount <= deposit


@pytest.mark.parametrize(
    ("changes", "now", "served", "due"),
    [
        ({"status": 2}, 0, False, True),
        ({"status": 3}, 2000, True, False),
        ({"status": 0}, 2000, True, False),
        ({}, 899, True, False),
        ({}, 900, True, True),
        ({}, 999, False, False),
        ({}, 1000, False, True),
    ],
)
def test_is_due__of_a_session__when_it_closes_expires_or_with_calls_nears_its_end(changes, now, served, due):
    assert is_due(session(**changes), now, 0, 100, served) is due


@given(seen_at=times, length=st.integers(0, 2**32), margin=st.integers(0, 86_400))
def test_settle_at__of_any_session__leaves_three_quarters_of_what_was_left(seen_at, length, margin):
    expires_at = seen_at + length
    at = settle_at(expires_at, seen_at, margin)
    assert expires_at - margin <= at <= expires_at
    assert 4 * (at - seen_at) >= 3 * length


@given(unsettled=st.dictionaries(st.text(max_size=3), amounts, max_size=8), limit=amounts)
def test_above_limit__of_any_amounts__settles_the_largest_and_no_more_than_it_has_to(unsettled, limit):
    chosen = above_limit(unsettled, limit)
    left = sum(amount for session_id, amount in unsettled.items() if session_id not in chosen)
    if limit == 0:
        assert chosen == []
        return
    assert left <= limit
    if chosen:
        smallest = unsettled[chosen[-1]]
        assert left + smallest > limit
        assert all(amount <= smallest for name, amount in unsettled.items() if name not in chosen)
