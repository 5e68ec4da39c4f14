import ape
import pytest

from tests.contracts.world import event, refused_without_a_reason


@pytest.mark.rule("NR-4", "NR-7")
def test_set_endpoint__by_operator__stores_and_logs(world):
    receipt = world.registry.set_endpoint(1, "https://moved", sender=world.operator)
    assert world.registry.nodes(1).endpoint == "https://moved"
    assert event(receipt, "EndpointChanged") == {"node_id": 1, "endpoint": "https://moved"}


@pytest.mark.rule("NR-4")
def test_set_endpoint__with_empty_endpoint__reverts(world):
    with ape.reverts("registry: empty endpoint"):
        world.registry.set_endpoint(1, "", sender=world.operator)


@pytest.mark.rule("NR-4")
def test_set_endpoint__of_256_bytes__is_accepted_257_reverts(world):
    world.registry.set_endpoint(1, "h" * 256, sender=world.operator)
    refused_without_a_reason(world.registry.set_endpoint, 1, "i" * 257, sender=world.operator)
    assert world.registry.nodes(1).endpoint == "h" * 256


@pytest.mark.rule("NR-6")
def test_set_endpoint__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.set_endpoint(1, "https://moved", sender=world.rival)


@pytest.mark.rule("NR-6")
def test_set_endpoint__of_unknown_node__reverts(world):
    for node_id in (0, 3):
        with ape.reverts("registry: unknown node"):
            world.registry.set_endpoint(node_id, "https://moved", sender=world.operator)
