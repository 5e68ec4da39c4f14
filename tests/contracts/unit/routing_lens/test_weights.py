import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import (
    CATEGORY_ID,
    NO_CAP,
    PRICE,
    entry,
)

SEED = keccak(text="seed")


@pytest.mark.rule("RLENS-5")
def test_weights__without_cap__drop_the_whale_above_the_average(market):
    relaxed, terms = market.lens.weights(CATEGORY_ID, NO_CAP)
    assert relaxed is False
    assert [(t.service_id, t.rule) for t in terms] == [(1, 0), (2, 0), (5, 1)]
    assert list(terms[2]) == [5, 1, 0, 0, 0, 0, 0, 0]
    half = 10**18 // 2
    quality = (4 * half + 4 * 10**18 + 2 * 10**18) // 10
    assert list(terms[0]) == [1, 0, half, 10**18, 10**18, 10**18, quality, quality]


@pytest.mark.rule("RLENS-5")
def test_weights__with_cap__name_the_cap(market):
    _, terms = market.lens.weights(CATEGORY_ID, PRICE)
    assert [t.rule for t in terms] == [0, 0, 2]


@pytest.mark.rule("RLENS-5")
def test_weights__with_cap_below_everyone__are_relaxed(market):
    relaxed, terms = market.lens.weights(CATEGORY_ID, 1)
    assert relaxed is True
    assert [t.rule for t in terms] == [0, 0, 0]


@pytest.mark.rule("RLENS-7")
def test_weights_and_order__of_category_of_1024__are_accepted(world):
    """The listings behind the second are not there, and what is not there is not routable."""
    slot = world.slot_of("NodeRegistry", "category_size")
    world.store(world.registry, entry(slot, CATEGORY_ID), 1_024)
    assert len(world.lens.weights(CATEGORY_ID, NO_CAP)[1]) == 2
    assert sorted(world.lens.order(CATEGORY_ID, NO_CAP, SEED, 16)) == [1, 2]


@pytest.mark.rule("RLENS-7")
def test_weights_and_order__of_category_above_1024__revert(world):
    slot = world.slot_of("NodeRegistry", "category_size")
    world.store(world.registry, entry(slot, CATEGORY_ID), 1_025)
    with ape.reverts("lens: category too large"):
        world.lens.weights(CATEGORY_ID, NO_CAP)
    with ape.reverts("lens: category too large"):
        world.lens.order(CATEGORY_ID, NO_CAP, SEED, 1)
