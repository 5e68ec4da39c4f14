import ape
import pytest

from tests.contracts.world import MIN_STAKE, STAKE, STAKE_PER_SLOT, event


@pytest.mark.rule("NR-13", "NR-30", "NR-31")
def test_add_stake__by_operator__stores_takes_and_logs(world):
    before = world.token.balanceOf(world.operator)
    receipt = world.registry.add_stake(1, 750, sender=world.operator)
    node = world.registry.nodes(1)
    assert node.stake == STAKE + 750
    assert node.max_concurrent == (STAKE + 750) // STAKE_PER_SLOT
    assert before - world.token.balanceOf(world.operator) == 750
    assert event(receipt, "StakeChanged") == {
        "node_id": 1,
        "stake": STAKE + 750,
        "unbonding": 0,
        "release_at": 0,
    }


@pytest.mark.rule("NR-13", "NR-31")
def test_add_stake__while_unbonding__keeps_what_unbonds(world):
    world.registry.request_unstake(1, 1_000, sender=world.operator)
    release_at = world.registry.nodes(1).release_at
    receipt = world.registry.add_stake(1, 10, sender=world.operator)
    assert event(receipt, "StakeChanged") == {
        "node_id": 1,
        "stake": STAKE - 990,
        "unbonding": 1_000,
        "release_at": release_at,
    }


@pytest.mark.rule("NR-13", "NR-25")
def test_add_stake__up_to_the_minimum__makes_routable(world):
    node_id = world.node(stake=MIN_STAKE - 1)
    service_id = world.service(node_id)
    assert world.registry.is_routable(service_id) is False
    world.registry.add_stake(node_id, 1, sender=world.operator)
    assert world.registry.is_routable(service_id) is True


@pytest.mark.rule("NR-13")
def test_add_stake__of_nothing__reverts(world):
    with ape.reverts("registry: nothing to stake"):
        world.registry.add_stake(1, 0, sender=world.operator)


@pytest.mark.rule("NR-5")
def test_add_stake__beyond_128_bits__reverts(world):
    for amount in (2**128 - STAKE, 2**256 - 1):
        with ape.reverts("registry: stake too large"):
            world.registry.add_stake(1, amount, sender=world.operator)


@pytest.mark.rule("NR-5")
def test_add_stake__up_to_128_bits__is_accepted(world):
    world.token.mint(world.operator, 2**128, sender=world.deployer)
    world.registry.add_stake(1, 2**128 - 1 - STAKE, sender=world.operator)
    assert world.registry.nodes(1).stake == 2**128 - 1


@pytest.mark.rule("NR-6")
def test_add_stake__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.add_stake(1, 1, sender=world.rival)


@pytest.mark.rule("NR-13")
def test_add_stake__beyond_the_balance__reverts(world):
    with ape.reverts("token: balance too small"):
        world.registry.add_stake(1, 10**13, sender=world.operator)
    assert world.registry.nodes(1).stake == STAKE
