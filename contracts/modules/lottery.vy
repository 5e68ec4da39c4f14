# pragma version ~=0.4.3
"""
@title Lottery
@license Apache-2.0
@notice The weighted lottery `oum-1` in integers: the guard, the terms, the weights and the order of a draw. Pure.
@dev    The same integers as `counterfoil.routing.lottery`, which the vectors in `tests/vectors/` hold to it. Prices and
        stakes are below 2 ** 128 and candidates at most 1,024, so nothing here can overflow.
"""


struct Candidate:
    service_id: uint256
    price: uint256
    stake: uint256
    rating_sum: uint256
    rating_count: uint256
    active_sessions: uint256
    max_concurrent: uint256


struct Terms:
    service_id: uint256
    rule: uint8
    reputation: uint256
    stake: uint256
    cheapness: uint256
    headroom: uint256
    quality: uint256
    weight: uint256


MAX_CANDIDATES: constant(uint256) = 1024
MAX_LENGTH: constant(uint256) = 64
WAD: constant(uint256) = 10 ** 18
KEPT: constant(uint8) = 0
OVER_AVERAGE: constant(uint8) = 1
OVER_CAP: constant(uint8) = 2


@internal
@pure
def _rule(price: uint256, prices: uint256, count: uint256, price_cap: uint256) -> uint8:
    """
    @notice Applies the guard to one price.
    @return 0 kept, 1 above 120% of the average, 2 above the cap; the cap where both hold.
    """
    if price > price_cap:
        return OVER_CAP
    if price * count * 100 > 120 * prices:
        return OVER_AVERAGE
    return KEPT


@internal
@pure
def _guard(candidates: DynArray[Candidate, MAX_CANDIDATES], price_cap: uint256) -> (bool, DynArray[uint8, MAX_CANDIDATES]):
    """
    @notice Applies the guard to all candidates. If it would drop everyone, it drops nobody.
    @return Whether the guard was relaxed, and each candidate's rule.
    """
    prices: uint256 = 0
    for candidate: Candidate in candidates:
        prices += candidate.price
    rules: DynArray[uint8, MAX_CANDIDATES] = []
    kept: uint256 = 0
    for candidate: Candidate in candidates:
        rule: uint8 = self._rule(candidate.price, prices, len(candidates), price_cap)
        if rule == KEPT:
            kept += 1
        rules.append(rule)
    if kept > 0 or len(candidates) == 0:
        return False, rules
    all_kept: DynArray[uint8, MAX_CANDIDATES] = []
    for candidate: Candidate in candidates:
        all_kept.append(KEPT)
    return True, all_kept


@internal
@pure
def _reputation(candidate: Candidate) -> uint256:
    """
    @notice The mean rating as a share of 100; one half for a node that nobody has rated.
    """
    if candidate.rating_count == 0:
        return WAD // 2
    return candidate.rating_sum * WAD // (100 * candidate.rating_count)


@internal
@pure
def _headroom(candidate: Candidate) -> uint256:
    """
    @notice The free share of a node's slots.
    """
    if candidate.active_sessions >= candidate.max_concurrent:
        return 0
    return WAD - candidate.active_sessions * WAD // candidate.max_concurrent


@internal
@pure
def _score(candidate: Candidate, max_stake: uint256, min_price: uint256) -> Terms:
    """
    @notice Forms one kept candidate's terms and weight.
    @param candidate The candidate.
    @param max_stake The largest stake of the kept candidates.
    @param min_price The lowest price of the kept candidates.
    """
    stake: uint256 = 0
    if max_stake > 0:
        stake = candidate.stake * WAD // max_stake
    cheapness: uint256 = WAD
    if candidate.price > 0:
        cheapness = min_price * WAD // candidate.price
    reputation: uint256 = self._reputation(candidate)
    headroom: uint256 = self._headroom(candidate)
    quality: uint256 = (4 * reputation + 4 * stake + 2 * cheapness) // 10
    return Terms(
        service_id=candidate.service_id,
        rule=KEPT,
        reputation=reputation,
        stake=stake,
        cheapness=cheapness,
        headroom=headroom,
        quality=quality,
        weight=quality * (WAD // 10 + 9 * headroom // 10) // WAD,
    )


@internal
@pure
def _extremes(
    candidates: DynArray[Candidate, MAX_CANDIDATES], rules: DynArray[uint8, MAX_CANDIDATES]
) -> (uint256, uint256):
    """
    @notice Finds the largest stake and the lowest price of the kept candidates.
    """
    max_stake: uint256 = 0
    min_price: uint256 = max_value(uint256)
    for i: uint256 in range(len(candidates), bound=MAX_CANDIDATES):
        if rules[i] == KEPT:
            max_stake = max(max_stake, candidates[i].stake)
            min_price = min(min_price, candidates[i].price)
    return max_stake, min_price


@internal
@pure
def _weigh(candidates: DynArray[Candidate, MAX_CANDIDATES], price_cap: uint256) -> (bool, DynArray[Terms, MAX_CANDIDATES]):
    """
    @notice Weighs a market.
    @param candidates The routable candidates by ascending service_id.
    @param price_cap The soft cap; 2 ** 256 - 1 for none.
    @return Whether the guard was relaxed, and terms for each candidate; those of a dropped one are 0 beside its rule.
    """
    relaxed: bool = False
    rules: DynArray[uint8, MAX_CANDIDATES] = []
    relaxed, rules = self._guard(candidates, price_cap)
    max_stake: uint256 = 0
    min_price: uint256 = 0
    max_stake, min_price = self._extremes(candidates, rules)
    weighed: DynArray[Terms, MAX_CANDIDATES] = []
    for i: uint256 in range(len(candidates), bound=MAX_CANDIDATES):
        terms: Terms = empty(Terms)
        if rules[i] == KEPT:
            terms = self._score(candidates[i], max_stake, min_price)
        else:
            terms.service_id = candidates[i].service_id
            terms.rule = rules[i]
        weighed.append(terms)
    return relaxed, weighed


@internal
@pure
def _equal(taken: DynArray[bool, MAX_CANDIDATES]) -> DynArray[uint256, MAX_CANDIDATES]:
    """
    @notice Lets each candidate that is left pull 1: the rule where every weight left is 0.
    """
    pulls: DynArray[uint256, MAX_CANDIDATES] = []
    for gone: bool in taken:
        pull: uint256 = 1
        if gone:
            pull = 0
        pulls.append(pull)
    return pulls


@internal
@pure
def _find(pulls: DynArray[uint256, MAX_CANDIDATES], r: uint256) -> uint256:
    """
    @notice Finds the first position whose cumulative pull exceeds r, which is below their sum.
    """
    cumulative: uint256 = 0
    for i: uint256 in range(len(pulls), bound=MAX_CANDIDATES):
        cumulative += pulls[i]
        if cumulative > r:
            return i
    raise "lottery: draw out of range"


@internal
@pure
def _order(weighed: DynArray[Terms, MAX_CANDIDATES], seed: bytes32, length: uint256) -> DynArray[uint256, MAX_LENGTH]:
    """
    @notice Draws an order without replacement.
    @param weighed What `_weigh` gave.
    @param seed The seed of the draw.
    @param length How many services to draw at the most.
    @return Service ids; the first is the pick.
    """
    order: DynArray[uint256, MAX_LENGTH] = []
    pulls: DynArray[uint256, MAX_CANDIDATES] = []
    taken: DynArray[bool, MAX_CANDIDATES] = []
    total: uint256 = 0
    left: uint256 = 0
    for terms: Terms in weighed:
        pulls.append(terms.weight)
        taken.append(terms.rule != KEPT)
        total += terms.weight
        left += convert(terms.rule == KEPT, uint256)
    for k: uint256 in range(min(length, left), bound=MAX_LENGTH):
        if total == 0:
            pulls = self._equal(taken)
            total = left - k
        r: uint256 = convert(keccak256(abi_encode(seed, k)), uint256) % total
        i: uint256 = self._find(pulls, r)
        order.append(weighed[i].service_id)
        total -= pulls[i]
        pulls[i] = 0
        taken[i] = True
    return order
