import ape
import pytest

from tests.contracts.world import CHALLENGE_PERIOD, DEPOSIT, PRICE, event


@pytest.mark.rule("SM-25")
def test_top_up__by_client__adds_and_logs_the_total(world, session_id):
    before = world.token.balanceOf(world.client)
    receipt = world.manager.top_up(session_id, 250, sender=world.client)
    session = world.manager.sessions(session_id)
    assert (session.deposit, session.price) == (DEPOSIT + 250, PRICE)
    assert before - world.token.balanceOf(world.client) == 250
    assert event(receipt, "SessionToppedUp") == {"session_id": session_id, "deposit": DEPOSIT + 250}


@pytest.mark.rule("SM-25")
def test_top_up__by_anybody__is_paid_by_the_sender_and_refunded_to_the_client(world, session_id):
    before = world.token.balanceOf(world.other)
    world.manager.top_up(session_id, 250, sender=world.other)
    assert before - world.token.balanceOf(world.other) == 250
    world.settle(session_id, 0, 0)
    assert world.manager.credit_of(world.client) == DEPOSIT + 250
    assert world.manager.credit_of(world.other) == 0


@pytest.mark.rule("SM-25")
def test_top_up__with_credit__spends_it_first(world):
    world.settled(300, 3)
    session_id = world.open(deposit=500)
    receipt = world.manager.top_up(session_id, 350, sender=world.client)
    assert event(receipt, "CreditSpent") == {
        "account": world.client.address,
        "session_id": session_id,
        "amount": 200,
    }
    assert event(receipt, "Transfer")["value"] == 150
    assert world.manager.credit_of(world.client) == 0


@pytest.mark.rule("SM-25", "SM-28")
def test_top_up__raises__what_a_voucher_may_reach(world, session_id):
    with ape.reverts("sessions: voucher above deposit"):
        world.settle(session_id, DEPOSIT + 1, 11)
    world.manager.top_up(session_id, 1, sender=world.client)
    world.settle(session_id, DEPOSIT + 1, 11)
    assert world.manager.credit_of(world.operator) == DEPOSIT + 1


@pytest.mark.rule("SM-25")
def test_top_up__of_nothing__reverts(world, session_id):
    with ape.reverts("sessions: nothing to add"):
        world.manager.top_up(session_id, 0, sender=world.client)


@pytest.mark.rule("SM-25")
@pytest.mark.parametrize("amount", [2**128 - DEPOSIT, 2**256 - 1])
def test_top_up__beyond_128_bits__reverts(world, session_id, amount):
    with ape.reverts("sessions: deposit too large"):
        world.manager.top_up(session_id, amount, sender=world.client)


@pytest.mark.rule("SM-25")
def test_top_up__up_to_128_bits__is_accepted(world, session_id):
    world.token.mint(world.client, 2**128, sender=world.deployer)
    world.manager.top_up(session_id, 2**128 - 1 - DEPOSIT, sender=world.client)
    assert world.manager.sessions(session_id).deposit == 2**128 - 1


@pytest.mark.rule("SM-26")
def test_top_up__of_unknown_session__reverts(world):
    with ape.reverts("sessions: unknown session"):
        world.manager.top_up(b"\1" * 32, 1, sender=world.client)


@pytest.mark.rule("SM-26")
def test_top_up__while_closing_or_settled__reverts(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    with ape.reverts("sessions: not open"):
        world.manager.top_up(session_id, 1, sender=world.client)
    world.at(world.now() + CHALLENGE_PERIOD)
    world.manager.finish_close(session_id, sender=world.client)
    with ape.reverts("sessions: not open"):
        world.manager.top_up(session_id, 1, sender=world.client)
