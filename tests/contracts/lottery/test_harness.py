"""The Vyper module against the frozen vectors and against Python over random markets, in boa."""

import boa
import pytest

from counterfoil.routing.lottery import NO_CAP
from tests.contracts.lottery.markets import (
    CASES,
    MAX_ORDER,
    cap_word,
    case_candidates,
    expected_rows,
    markets,
    seed_of,
    terms_rows,
    words,
)

BATCHES = 10
MARKETS_A_BATCH = 110


def small(random):
    """Mostly small markets: a draw over 40 costs this EVM 0.1 s. Anvil takes the many large ones."""
    most = random.choices((4, 12, 40), weights=(70, 25, 5))[0]
    return random.randint(0, most)


def tuples(rows):
    """What boa decoded, as plain tuples."""
    return [tuple(row) for row in rows]


def test_vectors__in_the_frozen_file__are_45():
    assert len(CASES) == 45
    assert {len(case["candidates"]) for case in CASES} >= {1, 2}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_weigh_and_order__of_a_vector__are_as_written(harness, case):
    candidates = [words(one) for one in sorted(case_candidates(case))]
    cap, seed = cap_word(case["price_cap"]), seed_of(case)
    relaxed, rows = harness.weigh(candidates, cap)
    assert relaxed is case["relaxed"]
    assert tuples(rows) == expected_rows(case)
    assert harness.order(candidates, cap, seed, MAX_ORDER) == case["order"][:MAX_ORDER]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_weigh_and_order__of_random_markets__are_pythons(harness, batch):
    for candidates, cap, seed, ranking in markets(f"boa {batch}", MARKETS_A_BATCH, small):
        rows = [words(one) for one in candidates]
        relaxed, weighed = harness.weigh(rows, cap_word(cap))
        assert (relaxed, tuples(weighed)) == (ranking.relaxed, terms_rows(ranking))
        assert harness.order(rows, cap_word(cap), seed, MAX_ORDER) == list(ranking.order)


def test_markets__over_all_batches__reach_every_rule():
    """The random markets are worth something: each branch of the lottery occurs in them."""
    seen = {"relaxed": 0, "average": 0, "cap": 0, "empty": 0, "no weight": 0}
    for batch in range(BATCHES):
        for candidates, _, _, ranking in markets(f"boa {batch}", MARKETS_A_BATCH, small):
            seen["empty"] += not candidates
            seen["relaxed"] += ranking.relaxed
            for drop in ranking.dropped.values():
                seen[drop.rule] += 1
            seen["no weight"] += any(terms.weight == 0 for terms in ranking.terms.values())
    assert min(seen.values()) >= 5, seen


def test_weigh__of_the_largest_market_of_extremes__does_not_overflow(harness):
    extreme = 2**128 - 1
    rows = [(i + 1, extreme, extreme, 100 * (2**32 - 1), 2**32 - 1, 2**32 - 1, extreme) for i in range(1_024)]
    relaxed, weighed = harness.weigh(rows, NO_CAP)
    assert relaxed is False
    assert {tuple(row)[1:4] for row in weighed} == {(0, 10**18, 10**18)}


def test_order__of_64__is_the_longest_and_one_of_65_reverts(harness):
    rows = [(i + 1, 100, 1_000, 0, 0, 0, 1) for i in range(65)]
    assert len(set(harness.order(rows, NO_CAP, b"\5" * 32, 64))) == 64
    with boa.reverts():
        harness.order(rows, NO_CAP, b"\5" * 32, 65)
    assert len(harness.order(rows[:64], NO_CAP, b"\5" * 32, 65)) == 64


@pytest.mark.parametrize(("r", "position"), [(0, 1), (4, 1), (5, 3), (6, 3)])
def test_find__within_the_sum__takes_the_first_that_exceeds(draw_harness, r, position):
    assert draw_harness.find([0, 5, 0, 2], r) == position


@pytest.mark.parametrize(("pulls", "r"), [([], 0), ([0, 0], 0), ([1, 2], 3)])
def test_find__at_or_above_the_sum__reverts(draw_harness, pulls, r):
    with boa.reverts("lottery: draw out of range"):
        draw_harness.find(pulls, r)
