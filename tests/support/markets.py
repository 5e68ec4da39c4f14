"""Markets for tests: hypothesis strategies, the frozen vectors, and a slow, obvious lottery."""

import json
from fractions import Fraction
from pathlib import Path

from eth_hash.auto import keccak
from hypothesis import settings
from hypothesis import strategies as st

from counterfoil.routing.lottery import AMOUNT_LIMIT, COUNT_LIMIT, Candidate

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "lottery.json").read_text())


unhurried = settings(deadline=None)
"""For properties: a busy machine is no failure."""


def from_json(fields):
    return Candidate(**{name: int(field) for name, field in fields.items()})


def amounts():
    return st.one_of(st.integers(0, 5), st.integers(0, 10**6), st.integers(0, AMOUNT_LIMIT - 1))


@st.composite
def candidate(draw, service_id):
    count = draw(st.one_of(st.integers(0, 3), st.integers(0, COUNT_LIMIT - 1)))
    return Candidate(
        service_id=service_id,
        price=draw(amounts()),
        stake=draw(amounts()),
        rating_sum=draw(st.integers(0, 100 * count)),
        rating_count=count,
        active_sessions=draw(st.integers(0, 12)),
        max_concurrent=draw(st.one_of(st.integers(0, 12), amounts())),
    )


@st.composite
def markets(draw, min_size=0, max_size=12):
    ids = draw(st.lists(st.integers(1, 400), unique=True, min_size=min_size, max_size=max_size))
    return [draw(candidate(service_id)) for service_id in ids]


def seeds():
    return st.binary(min_size=32, max_size=32)


def caps():
    return st.one_of(st.none(), amounts())


def slow_guard(candidates, cap):
    """The rule of each dropped service, from the text of the design: exact ratios, one after the other."""
    dropped = {}
    for one in candidates:
        average = Fraction(sum(other.price for other in candidates), len(candidates))
        if Fraction(one.price) > Fraction(120, 100) * average:
            dropped[one.service_id] = "average"
        if cap is not None and one.price > cap:
            dropped[one.service_id] = "cap"
    return {} if len(dropped) == len(candidates) else dropped


def slow_weight(one, kept):
    """The weight of one candidate, every floor written as a division of Fractions."""
    wad = 10**18

    def floor(numerator, denominator):
        return int(Fraction(numerator, denominator))

    reputation = wad // 2 if one.rating_count == 0 else floor(one.rating_sum * wad, 100 * one.rating_count)
    most = max(other.stake for other in kept)
    stake = 0 if most == 0 else floor(one.stake * wad, most)
    cheapest = min(other.price for other in kept)
    cheapness = wad if one.price == 0 else floor(cheapest * wad, one.price)
    full = one.max_concurrent == 0 or one.active_sessions >= one.max_concurrent
    headroom = 0 if full else wad - floor(one.active_sessions * wad, one.max_concurrent)
    quality = floor(4 * reputation + 4 * stake + 2 * cheapness, 10)
    return floor(quality * (wad // 10 + floor(9 * headroom, 10)), wad)


def slow_order(candidates, seed, cap):
    """The order, walking every candidate for every draw."""
    dropped = slow_guard(candidates, cap)
    kept = [one for one in candidates if one.service_id not in dropped]
    weights = {one.service_id: slow_weight(one, kept) for one in kept}
    order = []
    while weights:
        if not any(weights.values()):
            weights = dict.fromkeys(weights, 1)
        number = int.from_bytes(keccak(seed + len(order).to_bytes(32, "big")), "big") % sum(weights.values())
        for service_id in sorted(weights):
            if number < weights[service_id]:
                order.append(service_id)
                del weights[service_id]
                break
            number -= weights[service_id]
    return order
