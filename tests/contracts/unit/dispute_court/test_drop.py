import ape
import pytest

from tests.contracts.world import BOND, RESOLVE_WINDOW, STAKE, event, events

DROPPED = 4


@pytest.fixture
def deadline(world, dispute_id):
    return world.court.disputes(dispute_id).opened_at + RESOLVE_WINDOW


@pytest.mark.rule("DC-20", "DC-21")
def test_drop__at_the_end_of_the_window_by_anybody__gives_the_bond_back_and_logs(
    world, session_id, dispute_id, deadline
):
    world.at(deadline)
    receipt = world.court.drop(dispute_id, sender=world.other)
    assert world.court.disputes(dispute_id).status == DROPPED
    assert world.court.credit_of(world.client) == BOND
    assert world.court.credit_of(world.operator) == 0
    assert (world.registry.nodes(1).stake, world.registry.nodes(1).holds) == (STAKE, 0)
    assert events(receipt, "StakeSlashed") == []
    assert event(receipt, "DisputeResolved") == {
        "dispute_id": dispute_id,
        "session_id": session_id,
        "node_id": 1,
        "status": DROPPED,
        "award": 0,
    }
    assert event(receipt, "CourtCredited") == {"account": world.client.address, "amount": BOND}


@pytest.mark.rule("DC-20")
def test_drop__a_second_early__reverts(world, dispute_id, deadline):
    for account in (world.client, world.operator, world.arbiter):
        world.at(deadline - 1 if account == world.client else world.now())
        with ape.reverts("court: resolve window runs"):
            world.court.drop(dispute_id, sender=account)


@pytest.mark.rule("DC-14")
def test_drop__twice_or_after_a_decision__reverts(world, dispute_id, deadline):
    decided = world.dispute(world.settled())
    world.court.resolve(world.disputed(decided), 0, sender=world.arbiter)
    world.at(deadline)
    world.court.drop(dispute_id, sender=world.other)
    for ended in (dispute_id, decided, 99):
        with ape.reverts("court: not open"):
            world.court.drop(ended, sender=world.other)
    assert world.court.credit_of(world.client) == BOND
    assert world.registry.nodes(1).holds == 0
