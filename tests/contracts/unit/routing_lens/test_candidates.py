import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import (
    CATEGORY_ID,
    NO_CAP,
    PRICE,
    STAKE,
    STAKE_PER_SLOT,
)

SEED = keccak(text="seed")


def ids(candidates):
    return [candidate.service_id for candidate in candidates]


@pytest.mark.rule("RLENS-3")
def test_candidates__of_a_category__are_the_routable_ones_with_every_field(market):
    for score in (80, 30):
        market.reputation.rate(market.settled(), score, sender=market.client)
    market.open()
    first, second, third = market.lens.candidates(CATEGORY_ID, 0, 10)
    assert list(first) == [1, PRICE, STAKE, 110, 2, 1, STAKE // STAKE_PER_SLOT]
    assert list(second) == [2, PRICE, STAKE, 0, 0, 0, STAKE // STAKE_PER_SLOT]
    assert list(third) == [5, 10_000, 9_000, 0, 0, 0, 9_000 // STAKE_PER_SLOT]


@pytest.mark.rule("RLENS-3", "RLENS-4")
@pytest.mark.parametrize(
    ("start", "count", "expected"),
    [
        (0, 2, [1, 2]),
        (1, 2, [2]),
        (2, 2, []),
        (2, 3, [5]),
        (4, 1_024, [5]),
        (5, 1, []),
        (0, 0, []),
        (2**256 - 1, 5, []),
    ],
)
def test_candidates__of_a_window__skip_what_is_not_routable(market, start, count, expected):
    assert ids(market.lens.candidates(CATEGORY_ID, start, count)) == expected


@pytest.mark.rule("RLENS-3")
def test_candidates__of_unknown_category__are_none(world):
    assert list(world.lens.candidates(keccak(text="no:such"), 0, 10)) == []
    assert list(world.lens.order(keccak(text="no:such"), NO_CAP, SEED, 16)) == []
    relaxed, terms = world.lens.weights(keccak(text="no:such"), NO_CAP)
    assert (relaxed, list(terms)) == (False, [])


@pytest.mark.rule("RLENS-4")
def test_candidates__of_more_than_1024__reverts(world):
    with ape.reverts("lens: too many listings"):
        world.lens.candidates(CATEGORY_ID, 0, 1_025)
