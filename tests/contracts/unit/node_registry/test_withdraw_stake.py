import ape
import pytest

from tests.contracts.world import STAKE, event


@pytest.fixture
def release_at(world):
    world.registry.set_capability(1, "routing.v1", True, sender=world.operator)
    world.registry.request_unstake(1, 1_200, sender=world.operator)
    return world.registry.nodes(1).release_at


@pytest.mark.rule("NR-17", "NR-31")
def test_withdraw_stake__at_release__pays_and_logs(world, release_at):
    before = world.token.balanceOf(world.operator)
    world.at(release_at)
    receipt = world.registry.withdraw_stake(1, sender=world.operator)
    node = world.registry.nodes(1)
    assert world.token.balanceOf(world.operator) - before == 1_200
    assert (node.stake, node.unbonding, node.release_at) == (STAKE - 1_200, 0, 0)
    assert (node.operator, node.capability_count) == (world.operator, 1)
    assert event(receipt, "StakeChanged") == {
        "node_id": 1,
        "stake": STAKE - 1_200,
        "unbonding": 0,
        "release_at": 0,
    }


@pytest.mark.rule("NR-15", "NR-17")
def test_withdraw_stake__a_second_early__reverts(world, release_at):
    world.at(release_at - 1)
    with ape.reverts("registry: still unbonding"):
        world.registry.withdraw_stake(1, sender=world.operator)


@pytest.mark.rule("NR-18", "NR-29")
def test_withdraw_stake__while_held__waits_for_every_release(world, release_at):
    for _ in range(2):
        world.registry.hold(1, sender=world.court)
    world.registry.release(1, sender=world.court)
    world.at(release_at)
    with ape.reverts("registry: held by a dispute"):
        world.registry.withdraw_stake(1, sender=world.operator)
    world.registry.release(1, sender=world.court)
    world.registry.withdraw_stake(1, sender=world.operator)
    assert world.registry.nodes(1).unbonding == 0


@pytest.mark.rule("NR-17")
def test_withdraw_stake__of_nothing__reverts(world):
    with ape.reverts("registry: nothing unbonding"):
        world.registry.withdraw_stake(1, sender=world.operator)


@pytest.mark.rule("NR-17")
def test_withdraw_stake__twice__reverts(world, release_at):
    world.at(release_at)
    world.registry.withdraw_stake(1, sender=world.operator)
    with ape.reverts("registry: nothing unbonding"):
        world.registry.withdraw_stake(1, sender=world.operator)


@pytest.mark.rule("NR-6")
def test_withdraw_stake__by_another_operator__reverts(world, release_at):
    world.at(release_at)
    with ape.reverts("registry: not the operator"):
        world.registry.withdraw_stake(1, sender=world.rival)


@pytest.mark.rule("NR-17")
def test_withdraw_stake__of_1__pays_it(world):
    before = world.token.balanceOf(world.operator)
    world.registry.request_unstake(1, 1, sender=world.operator)
    world.at(world.registry.nodes(1).release_at)
    world.registry.withdraw_stake(1, sender=world.operator)
    assert world.token.balanceOf(world.operator) - before == 1
    assert world.registry.nodes(1).unbonding == 0
