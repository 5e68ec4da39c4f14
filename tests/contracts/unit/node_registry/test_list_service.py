import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import CATEGORY, CATEGORY_ID, event

OTHER_CATEGORY = "mcp:web-search"


@pytest.mark.rule("NR-19")
def test_list_service__with_new_category__stores_and_logs(world):
    receipt = world.registry.list_service(1, OTHER_CATEGORY, 77, "ipfs://card", sender=world.operator)
    category_id = keccak(text=OTHER_CATEGORY)
    service = world.registry.services(3)
    assert world.registry.service_count() == 3
    assert (service.node_id, service.price, service.active) == (1, 77, True)
    assert (bytes(service.category_id), service.metadata_uri) == (category_id, "ipfs://card")
    assert world.registry.service_of(1, category_id) == 3
    assert event(receipt, "ServiceListed") == {
        "service_id": 3,
        "node_id": 1,
        "category_id": category_id,
        "category": OTHER_CATEGORY,
        "price": 77,
        "metadata_uri": "ipfs://card",
    }


@pytest.mark.rule("NR-19", "NR-35")
def test_list_service__of_several_nodes__appends_to_the_category(world):
    service_id = world.service(world.node())
    assert world.registry.category_size(CATEGORY_ID) == 3
    assert [world.registry.category_service(CATEGORY_ID, i) for i in range(3)] == [1, 2, service_id]


@pytest.mark.rule("NR-21")
def test_list_service__twice_in_a_category__reverts_even_when_paused(world):
    world.registry.set_active(1, False, sender=world.operator)
    with ape.reverts("registry: category already listed"):
        world.registry.list_service(1, CATEGORY, 1, "", sender=world.operator)


@pytest.mark.rule("NR-20", "MOD-2")
@pytest.mark.parametrize("category", ["", ":a", "-a", ".a", "Data", "a b", "a/b", "é", "a\0"])
def test_list_service__with_malformed_category__reverts(world, category):
    with ape.reverts("registry: malformed category"):
        world.registry.list_service(1, category, 1, "", sender=world.operator)


@pytest.mark.rule("NR-20", "MOD-2")
@pytest.mark.parametrize("category", ["a", "9", "a:", "a.b-c:d", "z" * 64])
def test_list_service__at_the_edges_of_the_grammar__is_accepted(world, category):
    world.registry.list_service(1, category, 1, "", sender=world.operator)
    assert world.registry.category_size(keccak(text=category)) == 1


@pytest.mark.rule("NR-22")
def test_list_service__with_price_of_129_bits__reverts(world):
    with ape.reverts("registry: price too large"):
        world.registry.list_service(1, OTHER_CATEGORY, 2**96, "", sender=world.operator)


@pytest.mark.rule("NR-22")
@pytest.mark.parametrize("price", [0, 2**96 - 1])
def test_list_service__with_extreme_price__is_accepted(world, price):
    world.registry.list_service(1, OTHER_CATEGORY, price, "", sender=world.operator)
    assert world.registry.services(3).price == price


@pytest.mark.rule("NR-6")
def test_list_service__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.list_service(1, OTHER_CATEGORY, 1, "", sender=world.rival)


@pytest.mark.rule("NR-6")
def test_list_service__of_unknown_node__reverts(world):
    with ape.reverts("registry: unknown node"):
        world.registry.list_service(3, OTHER_CATEGORY, 1, "", sender=world.operator)
