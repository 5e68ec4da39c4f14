"""The weighted lottery `oum-1` (design section 5): a price guard, a blend of terms, a seeded draw.

Everything is an integer; a term is a WAD (10**18 is one). RoutingLens computes the same integers on chain.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import accumulate, pairwise
from types import MappingProxyType

from eth_hash.auto import keccak

from counterfoil.routing import reasons

__all__ = [
    "ALGORITHM",
    "AMOUNT_LIMIT",
    "COUNT_LIMIT",
    "NO_CAP",
    "WAD",
    "Candidate",
    "Drop",
    "LotteryError",
    "Ranking",
    "Terms",
    "category_id",
    "draw_seed",
    "pinned_reason",
    "promised_shares",
    "rank",
    "reason",
]

ALGORITHM = "oum-1"
WAD = 10**18
NO_CAP = 2**256 - 1
AMOUNT_LIMIT = 2**128
COUNT_LIMIT = 2**32

_LIMITS = {
    "service_id": NO_CAP + 1,
    "price": AMOUNT_LIMIT,
    "stake": AMOUNT_LIMIT,
    "rating_sum": 100 * COUNT_LIMIT,
    "rating_count": COUNT_LIMIT,
    "active_sessions": COUNT_LIMIT,
    "max_concurrent": AMOUNT_LIMIT,
}


class LotteryError(ValueError):
    """An argument that no chain state could have produced; the message is a sentence that names it."""


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A routable listing as chain state describes it.

    `price` and `stake` are base units below 2**128, `rating_sum` adds scores of 0 to 100, counts are below
    2**32, `max_concurrent` is what the stake pays for. Raises LotteryError for anything else.
    """

    service_id: int
    price: int
    stake: int
    rating_sum: int
    rating_count: int
    active_sessions: int
    max_concurrent: int

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_integer(self.service_id, field.name, getattr(self, field.name))
        if self.rating_sum > 100 * self.rating_count:
            raise LotteryError(
                f"candidate {self.service_id}: rating_sum {self.rating_sum} is more than 100 for each of "
                f"{reasons.plural(self.rating_count, 'rating')}"
            )


@dataclass(frozen=True, slots=True)
class Terms:
    """What one kept candidate scored; each a WAD from 0 to 10**18."""

    reputation: int
    stake: int
    cheapness: int
    headroom: int
    quality: int
    weight: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Why the price guard dropped a candidate: the rule, and the sentence with the numbers."""

    rule: reasons.Rule
    sentence: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """One draw. `candidates` and `kept` ascend by service_id; `order` is every kept one as drawn."""

    candidates: tuple[Candidate, ...]
    seed: bytes
    price_cap: int | None
    kept: tuple[int, ...]
    dropped: Mapping[int, Drop]
    terms: Mapping[int, Terms]
    relaxed: bool
    order: tuple[int, ...]


def rank(candidates: Iterable[Candidate], seed: bytes, price_cap: int | None = None) -> Ranking:
    """Rank the routable candidates of one category, in any order of input.

    `seed` is the 32 bytes of `draw_seed`; `price_cap` is the soft cap in base units a call (None: no cap).
    No candidates give an empty ranking. Raises LotteryError for a seed of another length, a cap that is no
    uint256 and a service named twice. Source: design section 5.
    """
    ordered = _sorted_once(candidates)
    _check_seed_and_cap(seed, price_cap)
    dropped = _guard(ordered, price_cap)
    # Only a cap can drop everyone: a price above 120% of the average always leaves a lower one.
    relaxed = bool(ordered) and len(dropped) == len(ordered)
    if relaxed:
        dropped = {}
    kept = [candidate for candidate in ordered if candidate.service_id not in dropped]
    terms = _score(kept)
    weights = [terms[candidate.service_id].weight for candidate in kept]
    ids = [candidate.service_id for candidate in kept]
    return Ranking(
        candidates=ordered,
        seed=seed,
        price_cap=price_cap,
        kept=tuple(ids),
        dropped=MappingProxyType(dropped),
        terms=MappingProxyType(terms),
        relaxed=relaxed,
        order=_draw(ids, weights, seed),
    )


def draw_seed(snapshot_hash: bytes, client: str, nonce: int, category: bytes) -> bytes:
    """The seed of a client's draw: keccak256 of block hash, client, draw number and category id.

    Raises LotteryError when an argument has the wrong size. Source: design section 3, SessionManager.
    """
    if len(snapshot_hash) != 32 or len(category) != 32:
        raise LotteryError("the snapshot hash and the category id of a draw must be 32 bytes each")
    if not 0 <= nonce <= NO_CAP:
        raise LotteryError(f"the draw number {nonce} is not an unsigned integer of 256 bits")
    return keccak(snapshot_hash + _address_word(client) + nonce.to_bytes(32, "big") + category)


def category_id(category: str) -> bytes:
    """The key of a category on chain: keccak256 of its name."""
    return keccak(category.encode())


def promised_shares(ranking: Ranking, attempt: int = 0) -> dict[int, Fraction]:
    """The exact chance of every candidate to win draw `attempt`, given who won the draws before it.

    Candidates that were dropped or have been drawn already have chance 0. The bias of reducing 256 bits
    modulo the total is below 2**-180 and left out. Raises LotteryError when the order has no such draw.
    """
    left = set(_left_at(ranking, attempt))
    weights = {service_id: ranking.terms[service_id].weight for service_id in left}
    total = sum(weights.values())
    shares = {candidate.service_id: Fraction(0) for candidate in ranking.candidates}
    for service_id in left:
        shares[service_id] = Fraction(weights[service_id], total) if total else Fraction(1, len(left))
    return shares


def reason(ranking: Ranking, attempt: int = 0) -> str:
    """Why `order[attempt]` was chosen, in a sentence. Raises LotteryError when the order has no such draw."""
    left = _left_at(ranking, attempt)
    winner = left[0]
    kept, dropped = len(ranking.kept), len(ranking.dropped)
    total = sum(ranking.terms[service_id].weight for service_id in left)
    if total == 0:
        return reasons.won_evenly(winner, attempt, len(left), kept, dropped)
    return reasons.won(winner, attempt, ranking.terms[winner].weight, total, kept, dropped)


def pinned_reason(ranking: Ranking, service_id: int) -> str:
    """Why a pinned service wins, whatever the guard says. Raises LotteryError when it is no candidate."""
    if all(candidate.service_id != service_id for candidate in ranking.candidates):
        raise LotteryError(reasons.not_routable(service_id))
    drop = ranking.dropped.get(service_id)
    return reasons.pinned(service_id, drop.sentence if drop else None)


def _left_at(ranking: Ranking, attempt: int) -> tuple[int, ...]:
    if not 0 <= attempt < len(ranking.order):
        kept = reasons.plural(len(ranking.order), "candidate")
        raise LotteryError(f"there is no attempt {attempt} of {kept}; attempts count from 0")
    return ranking.order[attempt:]


def _guard(candidates: Sequence[Candidate], price_cap: int | None) -> dict[int, Drop]:
    count = len(candidates)
    total = sum(candidate.price for candidate in candidates)
    dropped: dict[int, Drop] = {}
    for candidate in candidates:
        if price_cap is not None and candidate.price > price_cap:
            dropped[candidate.service_id] = Drop("cap", reasons.above_cap(candidate.price, price_cap))
        elif candidate.price * count * 100 > 120 * total:
            sentence = reasons.above_average(candidate.price, total, count)
            dropped[candidate.service_id] = Drop("average", sentence)
    return dropped


def _score(kept: Sequence[Candidate]) -> dict[int, Terms]:
    most_stake = max((candidate.stake for candidate in kept), default=0)
    least_price = min((candidate.price for candidate in kept), default=0)
    return {candidate.service_id: _terms(candidate, most_stake, least_price) for candidate in kept}


def _terms(candidate: Candidate, most_stake: int, least_price: int) -> Terms:
    reputation = _reputation(candidate)
    stake = candidate.stake * WAD // most_stake if most_stake else 0
    cheapness = least_price * WAD // candidate.price if candidate.price else WAD
    headroom = _headroom(candidate)
    quality = (4 * reputation + 4 * stake + 2 * cheapness) // 10
    weight = quality * (WAD // 10 + 9 * headroom // 10) // WAD
    return Terms(reputation, stake, cheapness, headroom, quality, weight)


def _reputation(candidate: Candidate) -> int:
    if candidate.rating_count == 0:
        return WAD // 2
    return candidate.rating_sum * WAD // (100 * candidate.rating_count)


def _headroom(candidate: Candidate) -> int:
    if candidate.active_sessions >= candidate.max_concurrent:
        return 0
    return WAD - candidate.active_sessions * WAD // candidate.max_concurrent


def _draw(ids: Sequence[int], weights: Sequence[int], seed: bytes) -> tuple[int, ...]:
    ids_left, weights_left = list(ids), list(weights)
    order: list[int] = []
    for draw in range(len(ids)):
        cumulative = list(accumulate(weights_left))
        if cumulative[-1] == 0:
            cumulative = list(range(1, len(ids_left) + 1))
        number = int.from_bytes(keccak(seed + draw.to_bytes(32, "big")), "big") % cumulative[-1]
        winner = bisect_right(cumulative, number)
        order.append(ids_left.pop(winner))
        weights_left.pop(winner)
    return tuple(order)


def _sorted_once(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    ordered = tuple(sorted(candidates))
    for before, after in pairwise(ordered):
        if before.service_id == after.service_id:
            raise LotteryError(f"service {after.service_id} is named twice among the candidates")
    return ordered


def _check_seed_and_cap(seed: bytes, price_cap: int | None) -> None:
    if not isinstance(seed, bytes) or len(seed) != 32:
        raise LotteryError("the seed of a draw must be 32 bytes")
    if price_cap is None:
        return
    if type(price_cap) is not int or not 0 <= price_cap <= NO_CAP:
        raise LotteryError(f"the price cap {price_cap!r} is not an unsigned integer of 256 bits")


def _check_integer(service_id: int, name: str, number: object) -> None:
    if type(number) is not int:
        raise LotteryError(f"candidate {service_id!r}: {name} is not an integer but {number!r}")
    if number < 0:
        raise LotteryError(f"candidate {service_id}: {name} is negative ({number})")
    if number >= _LIMITS[name]:
        raise LotteryError(f"candidate {service_id}: {name} {number} is not below {_LIMITS[name]}")


def _address_word(address: str) -> bytes:
    if not address.startswith("0x") or len(address) != 42:
        raise LotteryError(f"{address[:80]!r} is not an address of 0x and 40 hexadecimal digits")
    try:
        return bytes.fromhex(address[2:]).rjust(32, b"\0")
    except ValueError:
        raise LotteryError(f"{address[:80]!r} is not an address of 0x and 40 hexadecimal digits") from None
