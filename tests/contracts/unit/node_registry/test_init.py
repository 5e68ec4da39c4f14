import ape
import pytest

from tests.contracts.world import EMPTY, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD, event


def deploy(world, token=None, min_stake=1, per_slot=1, period=1, court=EMPTY):
    return world.deployer.deploy(world.project.NodeRegistry, token or world.token, min_stake, per_slot, period, court)


@pytest.mark.rule("NR-1")
def test_init__with_parameters__shows_and_logs_them(world):
    assert list(world.registry.parameters()) == [
        world.token, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD, world.court,
    ]  # fmt: skip
    registry = deploy(world, min_stake=2, per_slot=3, period=4, court=world.other)
    assert event(registry.creation_metadata.receipt, "RegistryDeployed") == {
        "stake_token": world.token.address,
        "min_stake": 2,
        "stake_per_slot": 3,
        "unbonding_period": 4,
        "court": world.other.address,
    }


@pytest.mark.rule("NR-2")
def test_init__with_empty_token__reverts(world):
    with ape.reverts("registry: empty stake token"):
        deploy(world, token=EMPTY)


@pytest.mark.rule("NR-2")
def test_init__with_no_stake_per_slot__reverts(world):
    with ape.reverts("registry: stake_per_slot is 0"):
        deploy(world, per_slot=0)


@pytest.mark.rule("NR-2")
@pytest.mark.parametrize("arguments", [{"min_stake": 2**128}, {"per_slot": 2**128}])
def test_init__with_stake_of_129_bits__reverts(world, arguments):
    with ape.reverts("registry: stake too large"):
        deploy(world, **arguments)


@pytest.mark.rule("NR-2")
def test_init__with_period_of_33_bits__reverts(world):
    with ape.reverts("registry: unbonding period too long"):
        deploy(world, period=2**32)


@pytest.mark.rule("NR-2")
def test_init__with_largest_parameters__is_accepted(world):
    registry = deploy(world, min_stake=2**128 - 1, per_slot=2**128 - 1, period=2**32 - 1)
    assert list(registry.parameters())[1:4] == [2**128 - 1, 2**128 - 1, 2**32 - 1]


@pytest.mark.rule("NR-25")
def test_init__with_no_minimum_stake__makes_a_node_without_stake_routable(world):
    registry = deploy(world, min_stake=0)
    registry.register_node("http://node", 0, sender=world.operator)
    registry.list_service(1, "data:x", 1, "", sender=world.operator)
    assert registry.is_routable(1) is True
    assert registry.is_routable(2) is False
