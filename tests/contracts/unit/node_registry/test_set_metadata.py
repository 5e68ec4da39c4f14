import ape
import pytest

from tests.contracts.world import event


@pytest.mark.rule("NR-24")
def test_set_metadata__by_operator__stores_and_logs(world):
    receipt = world.registry.set_metadata(1, "ipfs://new", sender=world.operator)
    assert world.registry.services(1).metadata_uri == "ipfs://new"
    assert event(receipt, "MetadataChanged") == {"service_id": 1, "metadata_uri": "ipfs://new"}


@pytest.mark.rule("NR-6")
def test_set_metadata__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.set_metadata(1, "", sender=world.rival)


@pytest.mark.rule("NR-6")
def test_set_metadata__of_unknown_service__reverts(world):
    with ape.reverts("registry: unknown service"):
        world.registry.set_metadata(3, "", sender=world.operator)
