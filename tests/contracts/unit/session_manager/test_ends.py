"""Every session ends exactly once, whichever way: the money is paid once and the node's counter goes back to 0."""

import ape
import pytest

from tests.contracts.world import CHALLENGE_PERIOD, DEPOSIT, DURATION


def by_voucher(world, session_id):
    world.settle(session_id, 300, 3)


def at_zero(world, session_id):
    world.settle(session_id, 0, 0)


def by_voucher_while_closing(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    world.settle(session_id, 300, 3)


def by_voucher_behind_every_deadline(world, session_id):
    world.at(world.now() + DURATION + CHALLENGE_PERIOD + 1)
    world.settle(session_id, 300, 3)


def by_finished_close(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    world.at(world.now() + CHALLENGE_PERIOD)
    world.manager.finish_close(session_id, sender=world.other)


def by_expiry(world, session_id):
    world.at(world.now() + DURATION + CHALLENGE_PERIOD + 1)
    world.manager.expire(session_id, sender=world.other)


def by_expiry_while_closing(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    by_expiry(world, session_id)


PAID = {
    by_voucher: 300,
    at_zero: 0,
    by_voucher_while_closing: 300,
    by_voucher_behind_every_deadline: 300,
    by_finished_close: 0,
    by_expiry: 0,
    by_expiry_while_closing: 0,
}
ENDS = pytest.mark.parametrize("end", PAID, ids=lambda end: end.__name__)


@pytest.mark.rule("SM-35", "SM-36")
@ENDS
def test_end__whichever__pays_all_and_lowers_the_counter_to_0(world, session_id, end):
    assert world.manager.active_sessions(1) == 1
    end(world, session_id)
    session = world.manager.sessions(session_id)
    assert (session.status, session.paid, session.deposit) == (3, PAID[end], 0)
    assert session.settled_at == world.now()
    assert world.manager.active_sessions(1) == 0
    assert world.manager.credit_of(world.operator) == PAID[end]
    assert world.manager.credit_of(world.client) == DEPOSIT - PAID[end]
    assert world.held() == DEPOSIT


@pytest.mark.rule("SM-35")
@ENDS
def test_end__whichever__cannot_be_followed_by_another_nor_pay_twice(world, session_id, end):
    running = world.open(client=world.other)
    end(world, session_id)
    world.at(world.now() + 2 * (DURATION + CHALLENGE_PERIOD))
    voucher = world.voucher(session_id, 400, 4)
    with ape.reverts("sessions: already settled"):
        world.manager.settle(session_id, 400, 4, voucher, sender=world.operator)
    with ape.reverts("sessions: already settled"):
        world.manager.settle(session_id, 0, 0, b"", sender=world.operator)
    with ape.reverts("sessions: close not requested"):
        world.manager.finish_close(session_id, sender=world.client)
    for method in (world.manager.expire, world.manager.request_close):
        with ape.reverts("sessions: not open"):
            method(session_id, sender=world.client)
    with ape.reverts("sessions: not open"):
        world.manager.top_up(session_id, 1, sender=world.client)
    assert world.manager.active_sessions(1) == 1
    owed = world.manager.credit_of(world.operator), world.manager.credit_of(world.client)
    assert owed == (PAID[end], DEPOSIT - PAID[end])
    assert world.manager.sessions(running).deposit == DEPOSIT


@pytest.mark.rule("SM-33")
@pytest.mark.parametrize("early", [0, DURATION + CHALLENGE_PERIOD + 1])
def test_finish_close__never_requested__reverts_even_when_all_time_has_passed(world, session_id, early):
    """`closes_at` is 0 then, and 0 is always behind us: the status is asked first."""
    world.at(world.now() + 1 + early)
    with ape.reverts("sessions: close not requested"):
        world.manager.finish_close(session_id, sender=world.client)
    with ape.reverts("sessions: unknown session"):
        world.manager.finish_close(b"\0" * 32, sender=world.client)
    assert world.manager.active_sessions(1) == 1


@pytest.mark.rule("SM-27")
def test_settle__after_an_attempt_above_the_deposit__still_takes_the_last_valid_voucher(world, session_id):
    valid = world.voucher(session_id, DEPOSIT, 10)
    with ape.reverts("sessions: voucher above deposit"):
        world.settle(session_id, DEPOSIT + 1, 11)
    world.manager.settle(session_id, DEPOSIT, 10, valid, sender=world.operator)
    assert world.manager.credit_of(world.operator) == DEPOSIT


@pytest.mark.rule("SM-28")
def test_settle__above_the_confirmed_deposit__is_never_more_than_it(world, session_id):
    """Service beyond the deposit is the node's own risk: nothing else of the client can be reached."""
    other = world.open(deposit=5 * DEPOSIT)
    world.settle(other, 0, 0)
    assert world.manager.credit_of(world.client) == 5 * DEPOSIT
    with ape.reverts("sessions: voucher above deposit"):
        world.settle(session_id, DEPOSIT + 1, 11)
    assert world.manager.credit_of(world.client) == 5 * DEPOSIT


@pytest.mark.rule("SM-14")
def test_settle__of_two_services_of_one_node__keeps_each_ones_price(world):
    dear = world.service(1, category="data:dear", price=400)
    first = world.open()
    second = world.open(dear, max_price=400)
    world.registry.set_price(1, 9_999, sender=world.operator)
    assert [world.manager.sessions(session_id).price for session_id in (first, second)] == [100, 400]
    assert world.manager.active_sessions(1) == 2


@pytest.mark.rule("SM-35")
def test_both_sides__when_the_other_is_silent__have_a_way_out_of_their_own(world):
    """The client by closing, the operator by its voucher; neither needs the other, nor anybody's files."""
    silent_node, silent_client = world.open(), world.open()
    world.settle(silent_client, 300, 3)
    world.manager.request_close(silent_node, sender=world.client)
    world.at(world.now() + CHALLENGE_PERIOD)
    world.manager.finish_close(silent_node, sender=world.client)
    assert world.manager.active_sessions(1) == 0
    assert world.manager.withdraw.call(world.client, sender=world.client) == 2 * DEPOSIT - 300
