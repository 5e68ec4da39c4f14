import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import event


@pytest.mark.rule("NR-8")
def test_set_capability__enabled__stores_counts_and_logs(world):
    receipt = world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    assert world.registry.has_capability(1, keccak(text="routing.v1")) is True
    assert world.registry.nodes(1).capability_count == 1
    assert event(receipt, "CapabilityChanged") == {
        "node_id": 1,
        "capability": "routing.v1",
        "enabled": True,
    }


@pytest.mark.rule("NR-8")
def test_set_capability__disabled__clears_uncounts_and_logs(world):
    world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    receipt = world.registry.set_capability(1, "routing.v1", False, sender=world.operator)
    assert world.registry.has_capability(1, keccak(text="routing.v1")) is False
    assert world.registry.nodes(1).capability_count == 0
    assert event(receipt, "CapabilityChanged")["enabled"] == 0


@pytest.mark.rule("NR-8")
def test_set_capability__to_what_it_is__reverts(world):
    with ape.reverts("registry: capability unchanged"):
        world.registry.set_capability(1, "routing.v1", False, sender=world.operator)
    world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    with ape.reverts("registry: capability unchanged"):
        world.registry.set_capability(1, "routing.v1", True, sender=world.operator)


@pytest.mark.rule("NR-9", "MOD-2")
@pytest.mark.parametrize("name", ["", "-a", ".a", "A", "a:b", "a_b", "a b", "ä", "a\n", "a\0"])
def test_set_capability__with_malformed_name__reverts(world, name):
    with ape.reverts("registry: malformed capability"):
        world.registry.set_capability(1, name, True, sender=world.operator)


@pytest.mark.rule("NR-9", "MOD-2")
@pytest.mark.parametrize("name", ["a", "0", "z9", "a-", "a.", "a" * 64])
def test_set_capability__at_the_edges_of_the_grammar__is_accepted(world, name):
    world.registry.set_capability(1, name, True, sender=world.operator)
    assert world.registry.has_capability(1, keccak(text=name)) is True


@pytest.mark.rule("NR-9")
def test_set_capability__with_65_characters__reverts(world):
    with ape.reverts():
        world.registry.set_capability(1, "a" * 65, True, sender=world.operator)


@pytest.mark.rule("NR-10")
def test_set_capability__with_16_enabled__refuses_one_more_until_one_goes(world):
    for index in range(16):
        world.registry.set_capability(1, f"c{index}", True, sender=world.operator)
    with ape.reverts("registry: too many capabilities"):
        world.registry.set_capability(1, "c16", True, sender=world.operator)
    world.registry.set_capability(1, "c3", False, sender=world.operator)
    world.registry.set_capability(1, "c16", True, sender=world.operator)
    assert world.registry.nodes(1).capability_count == 16


@pytest.mark.rule("NR-8", "NR-29")
def test_set_capability__beside_unbonding_and_hold__keeps_both(world):
    world.registry.request_unstake(1, 100, sender=world.operator)
    world.registry.hold(1, sender=world.court)
    before = world.registry.nodes(1)
    world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    after = world.registry.nodes(1)
    assert (after.operator, after.release_at, after.holds) == (world.operator, before.release_at, 1)


@pytest.mark.rule("NR-6")
def test_set_capability__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.set_capability(1, "routing.v1", True, sender=world.rival)
