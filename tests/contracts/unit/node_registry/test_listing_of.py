import pytest

from tests.contracts.world import CATEGORY_ID, MIN_STAKE, PRICE, STAKE, STAKE_PER_SLOT


@pytest.mark.rule("NR-25", "NR-30")
def test_listing_of__a_service__joins_it_with_its_node(world):
    listing = world.registry.listing_of(1)
    assert (listing.node_id, listing.operator, listing.price) == (1, world.operator, PRICE)
    assert (listing.stake, listing.max_concurrent) == (STAKE, STAKE // STAKE_PER_SLOT)
    assert (bytes(listing.category_id), listing.routable) == (CATEGORY_ID, True)


@pytest.mark.rule("NR-25", "NR-32")
def test_listing_of__unknown_service__is_empty_and_not_routable(world):
    listing = world.registry.listing_of(99)
    assert (listing.node_id, listing.price, listing.routable) == (0, 0, False)
    assert world.registry.is_routable(99) is False
    assert (world.registry.services(99).active, world.registry.services(99).node_id) == (False, 0)


@pytest.mark.rule("NR-25")
def test_listing_of__node_at_the_minimum_stake__is_routable_and_one_below_is_not(world):
    world.registry.request_unstake(1, STAKE - MIN_STAKE, sender=world.operator)
    assert world.registry.listing_of(1).routable is True
    world.registry.request_unstake(1, 1, sender=world.operator)
    assert world.registry.listing_of(1).routable is False
