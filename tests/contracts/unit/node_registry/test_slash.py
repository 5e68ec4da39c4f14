import ape
import pytest

from tests.contracts.world import EMPTY, STAKE, event

UNBONDING = 2_000


@pytest.fixture
def release_at(world):
    """Node 1 with 3,000 staked and 2,000 unbonding."""
    world.registry.request_unstake(1, UNBONDING, sender=world.operator)
    return world.registry.nodes(1).release_at


@pytest.mark.rule("NR-26", "NR-27", "NR-31")
@pytest.mark.parametrize(
    ("amount", "from_stake", "from_unbonding"),
    [
        (1, 1, 0),
        (3_000, 3_000, 0),
        (3_001, 3_000, 1),
        (5_000, 3_000, 2_000),
        (5_001, 3_000, 2_000),
        (2**256 - 1, 3_000, 2_000),
    ],
)
def test_slash__of_an_amount__takes_stake_then_unbonding_and_pays_the_court(
    world, release_at, amount, from_stake, from_unbonding
):
    assert world.registry.slash.call(1, amount, sender=world.court) == from_stake + from_unbonding
    receipt = world.registry.slash(1, amount, sender=world.court)
    node = world.registry.nodes(1)
    assert (node.stake, node.unbonding) == (3_000 - from_stake, UNBONDING - from_unbonding)
    assert world.token.balanceOf(world.court) == from_stake + from_unbonding
    assert world.token.balanceOf(world.registry) == 2 * STAKE - from_stake - from_unbonding
    assert event(receipt, "StakeSlashed") == {
        "node_id": 1,
        "from_stake": from_stake,
        "from_unbonding": from_unbonding,
        "recipient": world.court.address,
    }
    assert event(receipt, "StakeChanged") == {
        "node_id": 1,
        "stake": node.stake,
        "unbonding": node.unbonding,
        "release_at": release_at,
    }


@pytest.mark.rule("NR-27")
def test_slash__of_nothing__moves_no_token(world):
    receipt = world.registry.slash(1, 0, sender=world.court)
    assert [log.event_name for log in receipt.events] == ["StakeSlashed", "StakeChanged"]
    assert world.registry.nodes(1).stake == STAKE


@pytest.mark.rule("NR-27")
def test_slash__of_node_without_stake__takes_nothing(world):
    node_id = world.node(stake=0)
    receipt = world.registry.slash(node_id, 10, sender=world.court)
    assert event(receipt, "StakeSlashed")["from_stake"] == 0
    assert world.token.balanceOf(world.court) == 0


@pytest.mark.rule("NR-17", "NR-26")
def test_slash__until_nothing_unbonds__leaves_nothing_to_withdraw(world, release_at):
    world.registry.slash(1, 5_000, sender=world.court)
    world.at(release_at)
    with ape.reverts("registry: nothing unbonding"):
        world.registry.withdraw_stake(1, sender=world.operator)


@pytest.mark.rule("NR-26")
def test_slash__of_one_node__leaves_the_other(world):
    world.registry.slash(1, 2**128, sender=world.court)
    assert world.registry.nodes(2).stake == STAKE


@pytest.mark.rule("NR-28")
def test_slash__by_anybody_else__reverts(world):
    for account in (world.operator, world.deployer):
        with ape.reverts("registry: not the court"):
            world.registry.slash(1, 1, sender=account)


@pytest.mark.rule("NR-28")
def test_slash__of_unknown_node__reverts(world):
    with ape.reverts("registry: unknown node"):
        world.registry.slash(3, 1, sender=world.court)


@pytest.mark.rule("NR-28")
def test_slash__without_a_court__is_nobodys(world):
    registry = world.deployer.deploy(world.project.NodeRegistry, world.token, 1, 1, 1, EMPTY)
    registry.register_node("http://node", 0, sender=world.operator)
    for method in (registry.hold, registry.release):
        with ape.reverts("registry: not the court"):
            method(1, sender=world.court)
    with ape.reverts("registry: not the court"):
        registry.slash(1, 1, sender=world.court)
