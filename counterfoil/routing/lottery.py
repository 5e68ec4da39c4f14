"""The weighted lottery `oum-1` (design section 5): a price guard, a blend of terms, a seeded draw.

Everything is an integer; a term is a WAD (10**18 is one). RoutingLens computes the same integers on chain.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from operator import attrgetter
from types import MappingProxyType

from eth_hash.auto import keccak

from counterfoil.routing import reasons
from counterfoil.routing.draw import Order, sums_of

__all__ = [
    "ALGORITHM",
    "AMOUNT_LIMIT",
    "COUNT_LIMIT",
    "NO_CAP",
    "WAD",
    "Candidate",
    "Drop",
    "LotteryError",
    "Order",
    "Ranking",
    "Slate",
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
MAX_WEIGHINGS = 8
"""How many sets of kept candidates a slate remembers the weights of."""

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
        for name, limit in _LIMITS.items():
            number = getattr(self, name)
            if type(number) is not int or not 0 <= number < limit:
                raise LotteryError(_impossible(self.service_id, name, number))
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


@dataclass(frozen=True)
class Ranking:
    """One draw. `candidates` and `kept` ascend by service_id; `order` is every kept one, drawn as far as it is read."""

    candidates: tuple[Candidate, ...]
    seed: bytes
    price_cap: int | None
    kept: tuple[int, ...]
    terms: Mapping[int, Terms]
    relaxed: bool
    order: Order

    @cached_property
    def dropped(self) -> Mapping[int, Drop]:
        """What the price guard dropped, by service_id."""
        total, count = sum(candidate.price for candidate in self.candidates), len(self.candidates)
        gone = [candidate for candidate in self.candidates if candidate.service_id not in self.terms]
        return MappingProxyType({one.service_id: _drop(one.price, self.price_cap, total, count) for one in gone})


@dataclass(frozen=True, slots=True)
class Scale:
    """What a kept candidate is measured by: the largest stake and the lowest price of the kept ones."""

    stake: int
    price: int


@dataclass(frozen=True, slots=True)
class Weighing:
    """Kept candidates with their terms, and the tree of their weights: all of a draw that is not its seed."""

    scale: Scale
    kept: tuple[int, ...]
    terms: Mapping[int, Terms]
    sums: Sequence[int]


class Slate(tuple[Candidate, ...]):
    """The candidates of a category, ascending by service_id; remembers how they weigh, so that a draw only draws.

    Threads may share one. Raises LotteryError for a service named twice.
    """

    _prices: list[int]
    _fair: int
    _weigh_up_to: Callable[[int], Weighing]

    def __new__(cls, candidates: Iterable[Candidate] = ()) -> "Slate":
        """Sort the candidates; a slate is given back as it is."""
        return candidates if isinstance(candidates, cls) else cls._made(candidates, Scale(0, 0), {})

    @classmethod
    def _made(cls, candidates: Iterable[Candidate], scale: Scale, known: Mapping[int, Terms]) -> "Slate":
        slate = super().__new__(cls, _sorted_once(candidates))
        slate._prices = sorted(candidate.price for candidate in slate)
        # The highest price that is not above 120% of the average.
        slate._fair = 120 * sum(slate._prices) // (100 * len(slate)) if slate else 0
        slate._weigh_up_to = lru_cache(maxsize=MAX_WEIGHINGS)(partial(_weigh, tuple(slate), scale, known))
        return slate

    def changed(self, services: Collection[int], candidates: Iterable[Candidate]) -> "Slate":
        """Replace what some services had here by new candidates of theirs; terms that stay are not made again."""
        weighing, _ = self.weighing()
        known = {service_id: terms for service_id, terms in weighing.terms.items() if service_id not in services}
        stay = [candidate for candidate in self if candidate.service_id not in services]
        return self._made([*stay, *candidates], weighing.scale, known)

    def weighing(self, price_cap: int | None = None) -> tuple[Weighing, bool]:
        """Weigh those whom the price guard keeps, and say whether it had to be relaxed.

        It keeps the cheapest: the dearest price of a kept one says who they are.
        """
        limit = self._fair if price_cap is None else min(self._fair, price_cap)
        count = bisect_right(self._prices, limit)
        # Only a cap can drop everyone: a price above 120% of the average always leaves a lower one.
        relaxed = count == 0 and len(self) > 0
        dearest = self._prices[count - 1] if self else 0
        return self._weigh_up_to(dearest), relaxed


def rank(candidates: Iterable[Candidate], seed: bytes, price_cap: int | None = None) -> Ranking:
    """Rank the routable candidates of one category, in any order of input; a Slate is not weighed twice.

    `seed` is the 32 bytes of `draw_seed`; `price_cap` is the soft cap in base units a call (None: no cap).
    No candidates give an empty ranking. Raises LotteryError for a seed of another length, a cap that is no
    uint256 and a service named twice. Source: design section 5.
    """
    slate = Slate(candidates)
    _check_seed_and_cap(seed, price_cap)
    weighing, relaxed = slate.weighing(price_cap)
    return Ranking(
        candidates=slate,
        seed=seed,
        price_cap=price_cap,
        kept=weighing.kept,
        terms=weighing.terms,
        relaxed=relaxed,
        order=Order(weighing.kept, weighing.sums, seed),
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
    gone = set(_drawn_before(ranking, attempt))
    weights = {service_id: ranking.terms[service_id].weight for service_id in ranking.kept if service_id not in gone}
    total = sum(weights.values())
    shares = {candidate.service_id: Fraction(0) for candidate in ranking.candidates}
    for service_id, weight in weights.items():
        shares[service_id] = Fraction(weight, total) if total else Fraction(1, len(weights))
    return shares


def reason(ranking: Ranking, attempt: int = 0) -> str:
    """Why `order[attempt]` was chosen, in a sentence. Raises LotteryError when the order has no such draw."""
    gone = _drawn_before(ranking, attempt)
    winner = ranking.order[attempt]
    kept, dropped = len(ranking.kept), len(ranking.candidates) - len(ranking.kept)
    total = sum(terms.weight for terms in ranking.terms.values())
    total -= sum(ranking.terms[service_id].weight for service_id in gone)
    if total == 0:
        return reasons.won_evenly(winner, attempt, kept - attempt, kept, dropped)
    return reasons.won(winner, attempt, ranking.terms[winner].weight, total, kept, dropped)


def pinned_reason(ranking: Ranking, service_id: int) -> str:
    """Why a pinned service wins, whatever the guard says. Raises LotteryError when it is no candidate."""
    if all(candidate.service_id != service_id for candidate in ranking.candidates):
        raise LotteryError(reasons.not_routable(service_id))
    drop = ranking.dropped.get(service_id)
    return reasons.pinned(service_id, drop.sentence if drop else None)


def _drawn_before(ranking: Ranking, attempt: int) -> tuple[int, ...]:
    if not 0 <= attempt < len(ranking.order):
        kept = reasons.plural(len(ranking.order), "candidate")
        raise LotteryError(f"there is no attempt {attempt} of {kept}; attempts count from 0")
    return ranking.order[:attempt]


def _drop(price: int, price_cap: int | None, total: int, count: int) -> Drop:
    if price_cap is not None and price > price_cap:
        return Drop("cap", reasons.above_cap(price, price_cap))
    return Drop("average", reasons.above_average(price, total, count))


def _weigh(candidates: Sequence[Candidate], known_scale: Scale, known: Mapping[int, Terms], dearest: int) -> Weighing:
    """Weigh the candidates up to a price; `known` are terms that hold where the scale is still `known_scale`."""
    kept = [candidate for candidate in candidates if candidate.price <= dearest]
    most_stake = max((candidate.stake for candidate in kept), default=0)
    scale = Scale(most_stake, min((candidate.price for candidate in kept), default=0))
    if scale != known_scale:
        known = {}
    terms = {one.service_id: known.get(one.service_id) or _terms(one, scale) for one in kept}
    sums = sums_of([one.weight for one in terms.values()])
    return Weighing(scale, tuple(terms), MappingProxyType(terms), sums)


def _terms(candidate: Candidate, scale: Scale) -> Terms:
    reputation = _reputation(candidate)
    stake = candidate.stake * WAD // scale.stake if scale.stake else 0
    cheapness = scale.price * WAD // candidate.price if candidate.price else WAD
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


def _sorted_once(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    ordered = tuple(sorted(candidates, key=attrgetter("service_id")))
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


def _impossible(service_id: int, name: str, number: object) -> str:
    if type(number) is not int:
        return f"candidate {service_id!r}: {name} is not an integer but {number!r}"
    if number < 0:
        return f"candidate {service_id}: {name} is negative ({number})"
    return f"candidate {service_id}: {name} {number} is not below {_LIMITS[name]}"


def _address_word(address: str) -> bytes:
    if not address.startswith("0x") or len(address) != 42:
        raise LotteryError(f"{address[:80]!r} is not an address of 0x and 40 hexadecimal digits")
    try:
        return bytes.fromhex(address[2:]).rjust(32, b"\0")
    except ValueError:
        raise LotteryError(f"{address[:80]!r} is not an address of 0x and 40 hexadecimal digits") from None
