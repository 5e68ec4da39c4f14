import ape
import pytest

from tests.contracts.world import CHALLENGE_PERIOD, DEPOSIT, DURATION, event


@pytest.fixture
def deadline(world, session_id):
    return world.manager.sessions(session_id).expires_at + CHALLENGE_PERIOD


@pytest.mark.rule("SM-34", "SM-41")
def test_expire__at_the_deadline__refunds_all_and_logs(world, session_id, deadline):
    world.at(deadline)
    receipt = world.manager.expire(session_id, sender=world.other)
    assert world.manager.sessions(session_id).status == 3
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


@pytest.mark.rule("SM-34")
def test_expire__a_second_early__reverts(world, session_id, deadline):
    world.at(deadline - 1)
    with ape.reverts("sessions: not expired"):
        world.manager.expire(session_id, sender=world.other)


@pytest.mark.rule("SM-34")
def test_expire__while_closing__ends_it_too(world, session_id, deadline):
    world.at(deadline - 10)
    world.manager.request_close(session_id, sender=world.client)
    world.at(deadline)
    world.manager.expire(session_id, sender=world.other)
    assert world.manager.active_sessions(1) == 0
    assert world.manager.credit_of(world.client) == DEPOSIT


@pytest.mark.rule("SM-34", "SM-35")
def test_expire__of_settled_session__reverts(world, session_id, deadline):
    world.settle(session_id)
    world.at(deadline)
    with ape.reverts("sessions: not open"):
        world.manager.expire(session_id, sender=world.other)


@pytest.mark.rule("SM-34", "SM-35")
def test_expire__twice__reverts(world, session_id, deadline):
    world.at(deadline)
    world.manager.expire(session_id, sender=world.other)
    with ape.reverts("sessions: not open"):
        world.manager.expire(session_id, sender=world.other)


@pytest.mark.rule("SM-34")
def test_expire__of_unknown_session__reverts(world):
    with ape.reverts("sessions: not open"):
        world.manager.expire(b"\1" * 32, sender=world.other)


@pytest.mark.rule("SM-34")
def test_expire__at_once__reverts(world, session_id):
    world.at(world.now() + DURATION)
    with ape.reverts("sessions: not expired"):
        world.manager.expire(session_id, sender=world.client)
