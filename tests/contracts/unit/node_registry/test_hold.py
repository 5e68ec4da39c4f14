import ape
import pytest

from tests.contracts.world import STAKE


@pytest.mark.rule("NR-29")
def test_hold__by_court__counts_and_keeps_the_rest(world):
    world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    world.registry.request_unstake(1, 10, sender=world.operator)
    before = world.registry.nodes(1)
    for expected in (1, 2):
        world.registry.hold(1, sender=world.court)
        assert world.registry.nodes(1).holds == expected
    node = world.registry.nodes(1)
    assert (node.operator, node.release_at, node.capability_count) == (world.operator, before.release_at, 1)
    assert (node.stake, node.unbonding) == (STAKE - 10, 10)


@pytest.mark.rule("NR-25", "NR-29")
def test_hold__on_a_node__does_not_stop_routing(world):
    world.registry.hold(1, sender=world.court)
    assert world.registry.is_routable(1) is True


@pytest.mark.rule("NR-28")
def test_hold__by_anybody_else__reverts(world):
    with ape.reverts("registry: not the court"):
        world.registry.hold(1, sender=world.operator)


@pytest.mark.rule("NR-28")
def test_hold__of_unknown_node__reverts(world):
    with ape.reverts("registry: unknown node"):
        world.registry.hold(3, sender=world.court)
