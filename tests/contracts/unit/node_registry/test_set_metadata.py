import ape
import pytest

from tests.contracts.world import event, refused_without_a_reason


@pytest.mark.rule("NR-24")
def test_set_metadata__by_operator__stores_and_logs(world):
    receipt = world.registry.set_metadata(1, "ipfs://new", sender=world.operator)
    assert world.registry.services(1).metadata_uri == "ipfs://new"
    assert event(receipt, "MetadataChanged") == {"service_id": 1, "metadata_uri": "ipfs://new"}


@pytest.mark.rule("NR-24")
def test_set_metadata__of_256_bytes__is_accepted_257_reverts(world):
    world.registry.set_metadata(1, "m" * 256, sender=world.operator)
    refused_without_a_reason(world.registry.set_metadata, 1, "n" * 257, sender=world.operator)
    assert world.registry.services(1).metadata_uri == "m" * 256


@pytest.mark.rule("NR-24")
def test_list_service__with_metadata_of_256_bytes__is_accepted_257_reverts(world):
    world.registry.list_service(1, "data:long", 1, "m" * 256, sender=world.operator)
    assert world.registry.services(3).metadata_uri == "m" * 256
    refused_without_a_reason(world.registry.list_service, 1, "data:more", 1, "m" * 257, sender=world.operator)


@pytest.mark.rule("NR-6")
def test_set_metadata__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.set_metadata(1, "", sender=world.rival)


@pytest.mark.rule("NR-6")
def test_set_metadata__of_unknown_service__reverts(world):
    with ape.reverts("registry: unknown service"):
        world.registry.set_metadata(3, "", sender=world.operator)
