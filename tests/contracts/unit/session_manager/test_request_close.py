import ape
import pytest

from tests.contracts.world import CHALLENGE_PERIOD, DEPOSIT, event


@pytest.mark.rule("SM-32")
def test_request_close__by_client__starts_the_period_and_logs(world, session_id):
    before = world.manager.sessions(session_id)
    receipt = world.manager.request_close(session_id, sender=world.client)
    session = world.manager.sessions(session_id)
    closes_at = world.now() + CHALLENGE_PERIOD
    assert (session.status, session.closes_at, session.deposit) == (2, closes_at, DEPOSIT)
    assert (session.expires_at, session.signer) == (before.expires_at, world.client)
    assert (session.operator, session.client) == (world.operator, world.client)
    assert (session.paid, session.calls) == (0, 0)
    assert world.manager.active_sessions(1) == 1
    assert event(receipt, "CloseRequested") == {"session_id": session_id, "closes_at": closes_at}


@pytest.mark.rule("SM-32")
def test_request_close__twice__reverts(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    with ape.reverts("sessions: not open"):
        world.manager.request_close(session_id, sender=world.client)


@pytest.mark.rule("SM-32")
def test_request_close__by_anybody_else__reverts(world, session_id):
    for account in (world.operator, world.other):
        with ape.reverts("sessions: not the client"):
            world.manager.request_close(session_id, sender=account)


@pytest.mark.rule("SM-17", "SM-32")
def test_request_close__by_the_session_key__reverts(world):
    session_id = world.open(signer=world.key.address)
    with ape.reverts("sessions: not the client"):
        world.manager.request_close(session_id, sender=world.key)


@pytest.mark.rule("SM-32")
def test_request_close__of_unknown_session__reverts(world):
    with ape.reverts("sessions: unknown session"):
        world.manager.request_close(b"\1" * 32, sender=world.client)


@pytest.mark.rule("SM-32")
def test_request_close__of_settled_session__reverts(world, session_id):
    world.settle(session_id)
    with ape.reverts("sessions: not open"):
        world.manager.request_close(session_id, sender=world.client)
