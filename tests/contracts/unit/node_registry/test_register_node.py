import ape
import pytest
from eth_abi import encode
from eth_utils import keccak

from tests.contracts.world import STAKE, STAKE_PER_SLOT, event, refused_without_a_reason


@pytest.mark.rule("NR-3")
def test_register_node__with_stake__stores_and_takes_it(world):
    before = world.token.balanceOf(world.operator)
    world.registry.register_node("http://new", 1_234, sender=world.operator)
    node = world.registry.nodes(3)
    assert world.registry.node_count() == 3
    assert node.operator == world.operator
    assert (node.stake, node.unbonding, node.release_at, node.holds) == (1_234, 0, 0, 0)
    assert node.max_concurrent == 1_234 // STAKE_PER_SLOT
    assert (node.capability_count, node.endpoint) == (0, "http://new")
    assert before - world.token.balanceOf(world.operator) == 1_234
    assert world.token.balanceOf(world.registry) == 2 * STAKE + 1_234


@pytest.mark.rule("NR-3", "NR-31")
def test_register_node__with_stake__logs_both_events(world):
    receipt = world.registry.register_node("http://new", 1_234, sender=world.operator)
    assert event(receipt, "NodeRegistered") == {
        "node_id": 3,
        "operator": world.operator.address,
        "endpoint": "http://new",
    }
    assert event(receipt, "StakeChanged") == {"node_id": 3, "stake": 1_234, "unbonding": 0, "release_at": 0}
    names = [log.event_name for log in receipt.events]
    assert names[:2] == ["NodeRegistered", "StakeChanged"]


@pytest.mark.rule("NR-3")
def test_register_node__with_zero_stake__takes_nothing(world):
    receipt = world.registry.register_node("http://new", 0, sender=world.operator)
    assert [log.event_name for log in receipt.events] == ["NodeRegistered", "StakeChanged"]
    assert world.registry.nodes(3).stake == 0


@pytest.mark.rule("NR-4")
def test_register_node__with_empty_endpoint__reverts(world):
    with ape.reverts("registry: empty endpoint"):
        world.registry.register_node("", 0, sender=world.operator)


@pytest.mark.rule("NR-5")
@pytest.mark.parametrize("stake", [2**128, 2**256 - 1])
def test_register_node__with_stake_of_129_bits__reverts(world, stake):
    with ape.reverts("registry: stake too large"):
        world.registry.register_node("http://new", stake, sender=world.operator)


@pytest.mark.rule("NR-5")
def test_register_node__with_the_largest_stake__is_accepted(world):
    world.token.mint(world.other, 2**128, sender=world.deployer)
    world.registry.register_node("http://new", 2**128 - 1, sender=world.other)
    assert world.registry.nodes(3).stake == 2**128 - 1


@pytest.mark.rule("NR-4")
def test_register_node__with_endpoint_of_256_bytes__is_accepted_257_reverts(world):
    world.registry.register_node("h" * 256, 0, sender=world.operator)
    assert world.registry.nodes(3).endpoint == "h" * 256
    refused_without_a_reason(world.registry.register_node, "h" * 257, 0, sender=world.operator)
    assert world.registry.node_count() == 3


@pytest.mark.rule("NR-4")
def test_register_node__with_bytes_that_are_no_text__is_accepted(world):
    """The chain does not look into strings: readers must expect any bytes."""
    selector = keccak(text="register_node(string,uint256)")[:4]
    data = selector + encode(["bytes", "uint256"], [b"http://\xff\xfe\x00", 0])
    world.operator.call(
        world.chain.provider.network.ecosystem.create_transaction(
            sender=world.operator, receiver=world.registry.address, data=data, gas_limit=1_000_000
        )
    )
    assert world.registry.node_count() == 3
    assert world.registry.listing_of(world.service(3)).operator == world.operator


@pytest.mark.rule("NR-32")
def test_nodes__with_unknown_id__is_empty(world):
    node = world.registry.nodes(99)
    assert int(node.operator, 16) == 0
    assert (node.stake, node.max_concurrent, node.endpoint) == (0, 0, "")
