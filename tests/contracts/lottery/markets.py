"""Random markets from a seed, the vectors, and Python's ranking in the shape in which the contracts answer."""

import json
from random import Random

from counterfoil.routing.lottery import AMOUNT_LIMIT, COUNT_LIMIT, NO_CAP, Candidate, rank
from tests.contracts.conftest import ROOT

CASES = json.loads((ROOT / "tests" / "vectors" / "lottery.json").read_text())["cases"]
RULES = {"average": 1, "cap": 2}
MAX_ORDER = 64


def words(candidate):
    """A candidate as the contracts take it."""
    return (
        candidate.service_id,
        candidate.price,
        candidate.stake,
        candidate.rating_sum,
        candidate.rating_count,
        candidate.active_sessions,
        candidate.max_concurrent,
    )


def case_candidates(case):
    """The candidates of a vector."""
    return [Candidate(**{name: int(field) for name, field in one.items()}) for one in case["candidates"]]


def terms_rows(ranking):
    """A ranking's terms in the lens's columns: 0 beside the rule for what was dropped."""
    rows = []
    for candidate in ranking.candidates:
        service_id = candidate.service_id
        if service_id in ranking.dropped:
            rows.append((service_id, RULES[ranking.dropped[service_id].rule], 0, 0, 0, 0, 0, 0))
            continue
        terms = ranking.terms[service_id]
        rows.append(
            (service_id, 0, terms.reputation, terms.stake, terms.cheapness, terms.headroom, terms.quality, terms.weight)
        )
    return rows


def expected_rows(case):
    """A vector's terms in the lens's columns."""
    names = ("reputation", "stake", "cheapness", "headroom", "quality", "weight")
    rows = []
    for one in sorted(case["candidates"], key=lambda one: one["service_id"]):
        key = str(one["service_id"])
        if key in case["dropped"]:
            rows.append((one["service_id"], RULES[case["dropped"][key]], 0, 0, 0, 0, 0, 0))
        else:
            rows.append((one["service_id"], 0, *(int(case["terms"][key][name]) for name in names)))
    return rows


def cap_word(price_cap):
    """A cap as the contracts take it."""
    return NO_CAP if price_cap is None else int(price_cap)


def case_cap(case):
    """A vector's cap as Python takes it."""
    return None if case["price_cap"] is None else int(case["price_cap"])


def seed_of(case):
    """A vector's seed."""
    return bytes.fromhex(case["draw_seed"].removeprefix("0x"))


def amount(random):
    """A price or stake: often 0, small, tied or extreme."""
    kind = random.randrange(6)
    if kind == 0:
        return 0
    if kind == 1:
        return random.randrange(4)
    if kind == 2:
        return 1_000 + random.randrange(3)
    if kind == 3:
        return AMOUNT_LIMIT - 1 - random.randrange(2)
    return random.randrange(2 ** random.randrange(1, 129))


def candidate(random, service_id):
    """One candidate that chain state could hold."""
    count = random.choice((0, 0, 1, random.randrange(50), COUNT_LIMIT - 1))
    slots = random.choice((0, 1, random.randrange(10), amount(random)))
    return Candidate(
        service_id=service_id,
        price=amount(random),
        stake=amount(random),
        rating_sum=random.choice((0, 100 * count, random.randrange(100 * count + 1))),
        rating_count=count,
        active_sessions=random.choice((0, 1, random.randrange(12), min(slots, COUNT_LIMIT - 1))),
        max_concurrent=slots,
    )


def market(random, size):
    """Candidates with rising ids, of which some are alike but for the id, and a cap or none."""
    candidates, service_id = [], 0
    uniform = random.randrange(8) == 0
    for _ in range(size):
        service_id += 1 + random.randrange(3)
        fresh = candidate(random, service_id)
        if candidates and (uniform or random.randrange(5) == 0):
            fresh = Candidate(service_id, *words(random.choice(candidates))[1:])
        candidates.append(fresh)
    prices = [one.price for one in candidates]
    cap = random.choice((None, None, amount(random), *(prices[:1] and [random.choice(prices)])))
    return candidates, cap


def markets(seed, count, sizes):
    """`count` markets from a seed: candidates, cap, seed of the draw, and Python's ranking."""
    random = Random(seed)
    for _ in range(count):
        candidates, cap = market(random, sizes(random))
        draw_seed = random.randbytes(32)
        yield candidates, cap, draw_seed, rank(candidates, draw_seed, cap)
