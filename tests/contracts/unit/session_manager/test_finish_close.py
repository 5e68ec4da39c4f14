import ape
import pytest

from tests.contracts.world import CHALLENGE_PERIOD, DEPOSIT, event, events


@pytest.fixture
def closes_at(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    return world.now() + CHALLENGE_PERIOD


@pytest.mark.rule("SM-33", "SM-36")
def test_finish_close__at_the_end_of_the_period__refunds_all_and_logs(world, session_id, closes_at):
    world.at(closes_at)
    receipt = world.manager.finish_close(session_id, sender=world.other)
    session = world.manager.sessions(session_id)
    assert (session.status, session.paid, session.deposit, session.calls) == (3, 0, 0, 0)
    assert world.manager.active_sessions(1) == 0
    assert world.manager.credit_of(world.client) == DEPOSIT
    assert event(receipt, "SessionSettled") == {
        "session_id": session_id,
        "node_id": 1,
        "client": world.client.address,
        "paid": 0,
        "refunded": DEPOSIT,
        "calls": 0,
    }
    assert events(receipt, "Credited") == [{"account": world.client.address, "amount": DEPOSIT}]


@pytest.mark.rule("SM-33")
def test_finish_close__a_second_early__reverts(world, session_id, closes_at):
    world.at(closes_at - 1)
    with ape.reverts("sessions: challenge period runs"):
        world.manager.finish_close(session_id, sender=world.client)


@pytest.mark.rule("SM-33")
def test_finish_close__without_request__reverts(world, session_id):
    with ape.reverts("sessions: close not requested"):
        world.manager.finish_close(session_id, sender=world.client)


@pytest.mark.rule("SM-33", "SM-35")
def test_finish_close__twice__reverts(world, session_id, closes_at):
    world.at(closes_at)
    world.manager.finish_close(session_id, sender=world.client)
    with ape.reverts("sessions: close not requested"):
        world.manager.finish_close(session_id, sender=world.client)
    assert world.manager.active_sessions(1) == 0


@pytest.mark.rule("SM-33")
def test_finish_close__of_unknown_session__reverts(world):
    with ape.reverts("sessions: unknown session"):
        world.manager.finish_close(b"\1" * 32, sender=world.client)


@pytest.mark.rule("SM-33", "SM-35")
def test_finish_close__after_settlement_in_the_period__reverts(world, session_id, closes_at):
    world.settle(session_id)
    world.at(closes_at)
    with ape.reverts("sessions: close not requested"):
        world.manager.finish_close(session_id, sender=world.client)
    assert world.manager.credit_of(world.operator) == 300
