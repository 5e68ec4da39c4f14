import ape
import pytest

from tests.contracts.world import PRICE, event


@pytest.mark.rule("NR-22")
def test_set_price__by_operator__stores_and_logs(world):
    receipt = world.registry.set_price(1, 250, sender=world.operator)
    service = world.registry.services(1)
    assert (service.price, service.node_id, service.active) == (250, 1, True)
    assert event(receipt, "PriceChanged") == {"service_id": 1, "price": 250}


@pytest.mark.rule("NR-22", "NR-23")
def test_set_price__of_paused_service__leaves_it_paused(world):
    world.registry.set_active(1, False, sender=world.operator)
    world.registry.set_price(1, 250, sender=world.operator)
    assert world.registry.services(1).active is False


@pytest.mark.rule("NR-22", "SM-14")
def test_set_price__with_running_session__leaves_its_price(world):
    session_id = world.open()
    world.registry.set_price(1, 250, sender=world.operator)
    assert world.manager.sessions(session_id).price == PRICE


@pytest.mark.rule("NR-22")
def test_set_price__of_129_bits__reverts(world):
    with ape.reverts("registry: price too large"):
        world.registry.set_price(1, 2**96, sender=world.operator)


@pytest.mark.rule("NR-6")
def test_set_price__by_another_operator__reverts(world):
    with ape.reverts("registry: not the operator"):
        world.registry.set_price(1, 250, sender=world.rival)


@pytest.mark.rule("NR-6")
def test_set_price__of_unknown_service__reverts(world):
    for service_id in (0, 3):
        with ape.reverts("registry: unknown service"):
            world.registry.set_price(service_id, 250, sender=world.operator)
