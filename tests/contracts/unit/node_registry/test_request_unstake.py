import ape
import pytest

from tests.contracts.world import MIN_STAKE, STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD, event


@pytest.mark.rule("NR-14", "NR-15", "NR-30", "NR-31")
def test_request_unstake__by_operator__counts_at_once_and_logs(world):
    receipt = world.registry.request_unstake(1, 1_200, sender=world.operator)
    node = world.registry.nodes(1)
    assert (node.stake, node.unbonding) == (STAKE - 1_200, 1_200)
    assert node.release_at == world.now() + UNBONDING_PERIOD
    assert node.max_concurrent == (STAKE - 1_200) // STAKE_PER_SLOT
    assert event(receipt, "StakeChanged") == {
        "node_id": 1,
        "stake": STAKE - 1_200,
        "unbonding": 1_200,
        "release_at": world.now() + UNBONDING_PERIOD,
    }
    assert world.token.balanceOf(world.registry) == 2 * STAKE


@pytest.mark.rule("NR-14", "NR-25")
def test_request_unstake__below_the_minimum__stops_routing(world):
    world.registry.request_unstake(1, STAKE - MIN_STAKE, sender=world.operator)
    assert world.registry.is_routable(1) is True
    world.registry.request_unstake(1, 1, sender=world.operator)
    assert world.registry.is_routable(1) is False


@pytest.mark.rule("NR-16")
def test_request_unstake__again__starts_the_period_anew_for_all(world):
    world.registry.request_unstake(1, 100, sender=world.operator)
    first = world.registry.nodes(1).release_at
    world.at(first - 1)
    world.registry.request_unstake(1, 200, sender=world.operator)
    node = world.registry.nodes(1)
    assert (node.unbonding, node.release_at) == (300, first - 1 + UNBONDING_PERIOD)


@pytest.mark.rule("NR-14")
def test_request_unstake__of_everything__leaves_no_stake(world):
    world.registry.request_unstake(1, STAKE, sender=world.operator)
    assert (world.registry.nodes(1).stake, world.registry.nodes(1).max_concurrent) == (0, 0)


@pytest.mark.rule("NR-14")
def test_request_unstake__of_nothing__reverts(world):
    with ape.reverts("registry: nothing to unstake"):
        world.registry.request_unstake(1, 0, sender=world.operator)


@pytest.mark.rule("NR-14")
def test_request_unstake__of_more_than_the_stake__reverts(world):
    with ape.reverts("registry: more than the stake"):
        world.registry.request_unstake(1, STAKE + 1, sender=world.operator)


@pytest.mark.rule("NR-5")
def test_request_unstake__beyond_128_bits_of_unbonding__reverts(world):
    world.token.mint(world.operator, 2**130, sender=world.deployer)
    world.registry.add_stake(1, 2**128 - 1 - STAKE, sender=world.operator)
    world.registry.request_unstake(1, 2**128 - 1, sender=world.operator)
    world.registry.add_stake(1, 1, sender=world.operator)
    with ape.reverts("registry: unbonding too large"):
        world.registry.request_unstake(1, 1, sender=world.operator)


@pytest.mark.rule("NR-29")
def test_request_unstake__while_held__keeps_the_hold_and_capabilities(world):
    world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    world.registry.hold(1, sender=world.court)
    world.registry.request_unstake(1, 1, sender=world.operator)
    assert (world.registry.nodes(1).holds, world.registry.nodes(1).capability_count) == (1, 1)


@pytest.mark.rule("NR-6")
def test_request_unstake__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.request_unstake(1, 1, sender=world.rival)
