import ape
import pytest

from tests.contracts.world import PRICE, event


@pytest.mark.rule("NR-23")
def test_set_active__off_and_on__stores_routes_and_logs(world):
    for active in (False, True):
        receipt = world.registry.set_active(1, active, sender=world.operator)
        service = world.registry.services(1)
        assert (service.active, service.price, service.node_id) == (active, PRICE, 1)
        assert world.registry.is_routable(1) is active
        assert world.registry.listing_of(1).routable is active
        assert event(receipt, "ServiceStatusChanged") == {"service_id": 1, "active": active}


@pytest.mark.rule("NR-6")
def test_set_active__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.set_active(1, False, sender=world.rival)


@pytest.mark.rule("NR-6")
def test_set_active__of_unknown_service__reverts(world):
    with ape.reverts("registry: unknown service"):
        world.registry.set_active(3, True, sender=world.operator)
