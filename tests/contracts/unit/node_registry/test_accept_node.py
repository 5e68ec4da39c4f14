import ape
import pytest

from tests.contracts.world import STAKE, event


@pytest.mark.rule("NR-11", "NR-12")
def test_accept_node__when_offered__hands_over_node_and_stake(world):
    world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    world.registry.hold(1, sender=world.court)
    world.registry.transfer_node(1, world.other, sender=world.operator)
    receipt = world.registry.accept_node(1, sender=world.other)
    node = world.registry.nodes(1)
    assert event(receipt, "NodeTransferred") == {"node_id": 1, "operator": world.other.address}
    assert (node.operator, node.stake, node.holds, node.capability_count) == (world.other, STAKE, 1, 1)
    assert int(world.registry.pending_operator(1), 16) == 0
    with ape.reverts("registry: not the operator"):
        world.registry.set_price(1, 7, sender=world.operator)
    world.registry.set_price(1, 7, sender=world.other)
    assert (world.registry.listing_of(1).operator, world.registry.services(1).price) == (world.other, 7)


@pytest.mark.rule("NR-11")
def test_accept_node__twice__reverts(world):
    world.registry.transfer_node(1, world.other, sender=world.operator)
    world.registry.accept_node(1, sender=world.other)
    with ape.reverts("registry: not offered to you"):
        world.registry.accept_node(1, sender=world.other)


@pytest.mark.rule("NR-11")
def test_accept_node__by_somebody_else__reverts(world):
    world.registry.transfer_node(1, world.other, sender=world.operator)
    for account in (world.rival, world.operator):
        with ape.reverts("registry: not offered to you"):
            world.registry.accept_node(1, sender=account)


@pytest.mark.rule("NR-11")
def test_accept_node__of_unknown_node__reverts(world):
    with ape.reverts("registry: not offered to you"):
        world.registry.accept_node(99, sender=world.other)


@pytest.mark.rule("NR-12", "NR-17")
def test_accept_node__while_unbonding__pays_the_new_operator(world):
    world.registry.request_unstake(1, 400, sender=world.operator)
    world.registry.transfer_node(1, world.other, sender=world.operator)
    world.registry.accept_node(1, sender=world.other)
    before = world.token.balanceOf(world.other)
    world.at(world.registry.nodes(1).release_at)
    world.registry.withdraw_stake(1, sender=world.other)
    assert world.token.balanceOf(world.other) - before == 400


@pytest.mark.rule("NR-12", "SM-14", "SM-27")
def test_accept_node__with_running_session__leaves_it_to_its_first_operator(world):
    session_id = world.open()
    world.registry.transfer_node(1, world.other, sender=world.operator)
    world.registry.accept_node(1, sender=world.other)
    with ape.reverts("sessions: not the operator"):
        world.settle(session_id, operator=world.other)
    world.settle(session_id, 300, 3)
    assert world.manager.credit_of(world.operator) == 300
    assert world.manager.sessions(world.open()).operator == world.other
