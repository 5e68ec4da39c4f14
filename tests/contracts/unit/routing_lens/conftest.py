"""A market of five services, of which three are routable."""

import pytest

from tests.contracts.world import (
    MIN_STAKE,
)


@pytest.fixture
def market(world):
    """Services 1 to 5 of five nodes; 3 is paused, 4 lacks stake, 5 is dear."""
    for price, stake in ((90, 3_000), (80, MIN_STAKE), (10_000, 9_000)):
        world.service(world.node(stake=stake), price=price)
    world.registry.set_active(3, False, sender=world.operator)
    world.registry.request_unstake(4, 1, sender=world.operator)
    return world
