import ape
import pytest

from tests.contracts.world import EMPTY


@pytest.mark.rule("NR-11")
def test_transfer_node__by_operator__changes_nothing_but_the_offer(world):
    receipt = world.registry.transfer_node(1, world.other, sender=world.operator)
    assert world.registry.pending_operator(1) == world.other
    assert world.registry.nodes(1).operator == world.operator
    assert list(receipt.events) == []


@pytest.mark.rule("NR-11")
def test_transfer_node__to_nobody__takes_the_offer_back(world):
    world.registry.transfer_node(1, world.other, sender=world.operator)
    world.registry.transfer_node(1, EMPTY, sender=world.operator)
    with ape.reverts("registry: not offered to you"):
        world.registry.accept_node(1, sender=world.other)


@pytest.mark.rule("NR-6")
def test_transfer_node__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.transfer_node(1, world.rival, sender=world.rival)
