# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title RoutingLens
@license Apache-2.0
@notice Views only: the lottery itself, so that an `eth_call` at a block replays a draw made on that block.
@dev    At most 1,024 listings a call. A later algorithm is another lens: this one has no state.
"""


from .interfaces import INodeRegistry
from .interfaces import IReputationLedger
from .interfaces import ISessionManager
from .modules import choices
from .modules import lottery


MAX_LISTINGS: constant(uint256) = 1024
MAX_ORDER: constant(uint256) = 16

REGISTRY: immutable(INodeRegistry)
SESSION_MANAGER: immutable(ISessionManager)
REPUTATION: immutable(IReputationLedger)


event LensDeployed:
    registry: address
    session_manager: address
    reputation: address


@deploy
def __init__(registry: INodeRegistry, session_manager: ISessionManager, reputation: IReputationLedger):
    """
    @notice Fixes the contracts that are read.
    """
    assert registry.address != empty(address), "lens: empty registry"
    assert session_manager.address != empty(address), "lens: empty session manager"
    assert reputation.address != empty(address), "lens: empty reputation"
    REGISTRY = registry
    SESSION_MANAGER = session_manager
    REPUTATION = reputation
    log LensDeployed(
        registry=registry.address, session_manager=session_manager.address, reputation=reputation.address
    )


@external
@view
def contracts() -> (address, address, address):
    """
    @notice The contracts that are read: registry, session manager, reputation.
    """
    return REGISTRY.address, SESSION_MANAGER.address, REPUTATION.address


@external
@pure
def draw_seed(snapshot_hash: bytes32, client: address, nonce: uint256, category_id: bytes32) -> bytes32:
    """
    @notice The seed of a draw, as the session manager forms it.
    """
    return choices._seed(snapshot_hash, client, nonce, category_id)


@external
@view
def candidates(category_id: bytes32, start: uint256, count: uint256) -> DynArray[lottery.Candidate, MAX_LISTINGS]:
    """
    @notice The routable ones of a window of a category's listings, by ascending service_id.
    @param category_id keccak256 of the category.
    @param start The window's first position, from 0.
    @param count The window's length, at most 1,024; it may pass the end.
    """
    return self._candidates(category_id, start, count)


@external
@view
def weights(category_id: bytes32, price_cap: uint256) -> (bool, DynArray[lottery.Terms, MAX_LISTINGS]):
    """
    @notice The terms and weights of a category's routable listings.
    @return Whether the guard was relaxed, and the terms; a dropped listing's are 0 beside its rule (1 average, 2 cap).
    """
    return self._weights(category_id, price_cap)


@external
@view
def order(
    category_id: bytes32, price_cap: uint256, seed: bytes32, length: uint256
) -> DynArray[uint256, lottery.MAX_LENGTH]:
    """
    @notice The order of a draw; the first is the pick.
    @param category_id keccak256 of the category.
    @param price_cap The soft cap; 2 ** 256 - 1 for none.
    @param seed The seed of the draw.
    @param length How many to draw, at most 16.
    """
    assert length <= MAX_ORDER, "lens: order too long"
    relaxed: bool = False
    weighed: DynArray[lottery.Terms, MAX_LISTINGS] = []
    relaxed, weighed = self._weights(category_id, price_cap)
    return lottery._order(weighed, seed, length)


@internal
@view
def _weights(category_id: bytes32, price_cap: uint256) -> (bool, DynArray[lottery.Terms, MAX_LISTINGS]):
    """
    @notice Weighs a whole category.
    """
    size: uint256 = staticcall REGISTRY.category_size(category_id)
    assert size <= MAX_LISTINGS, "lens: category too large"
    return lottery._weigh(self._candidates(category_id, 0, size), price_cap)


@internal
@view
def _candidates(category_id: bytes32, start: uint256, count: uint256) -> DynArray[lottery.Candidate, MAX_LISTINGS]:
    """
    @notice Collects the routable listings of a window.
    """
    assert count <= MAX_LISTINGS, "lens: too many listings"
    found: DynArray[lottery.Candidate, MAX_LISTINGS] = []
    size: uint256 = staticcall REGISTRY.category_size(category_id)
    if start >= size:
        return found
    for i: uint256 in range(min(count, size - start), bound=MAX_LISTINGS):
        service_id: uint256 = staticcall REGISTRY.category_service(category_id, start + i)
        listing: INodeRegistry.Listing = staticcall REGISTRY.listing_of(service_id)
        if listing.routable:
            found.append(self._candidate(service_id, listing))
    return found


@internal
@view
def _candidate(service_id: uint256, listing: INodeRegistry.Listing) -> lottery.Candidate:
    """
    @notice Completes a listing with its node's ratings and load.
    """
    rating: IReputationLedger.Rating = staticcall REPUTATION.ratings(listing.node_id)
    return lottery.Candidate(
        service_id=service_id,
        price=listing.price,
        stake=listing.stake,
        rating_sum=rating.rating_sum,
        rating_count=rating.rating_count,
        active_sessions=staticcall SESSION_MANAGER.active_sessions(listing.node_id),
        max_concurrent=listing.max_concurrent,
    )
