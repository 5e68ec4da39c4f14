# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Packing harness
@license Apache-2.0
@notice Calls the packing module, so that its fields can be fuzzed. For tests only.
"""


from ..modules import packing


@external
@pure
def account_word(account: address, first: uint256, second: uint256) -> uint256:
    """
    @notice Packs `seller`.
    """
    return packing._pack_account(account, first, second)


@external
@pure
def account_fields(word: uint256) -> (address, uint256, uint256):
    """
    @notice Reads `seller`.
    """
    return packing._account(word), packing._first(word), packing._second(word)


@external
@pure
def buyer_word(client: address, price: uint256) -> uint256:
    """
    @notice Packs `buyer`.
    """
    return packing._pack_buyer(client, price)


@external
@pure
def buyer_fields(word: uint256) -> (address, uint256):
    """
    @notice Reads `buyer`.
    """
    return packing._account(word), packing._price(word)


@external
@pure
def state_word(
    amount: uint256, calls: uint256, expires_at: uint256, turns_at: uint256, status: uint256, keyed: bool
) -> uint256:
    """
    @notice Packs `state`.
    """
    return packing._pack_state(amount, calls, expires_at, turns_at, status, keyed)


@external
@pure
def state_fields(word: uint256) -> (uint256, uint256, uint256, uint256, uint256, bool):
    """
    @notice Reads `state`.
    """
    return (
        packing._low(word),
        packing._calls(word),
        packing._expires_at(word),
        packing._turns_at(word),
        packing._status(word),
        packing._is_keyed(word),
    )


@external
@pure
def halves_word(low: uint256, high: uint256) -> uint256:
    """
    @notice Packs `stakes`, `weight` or `records`.
    """
    return packing._low_high(low, high)


@external
@pure
def halves_fields(word: uint256) -> (uint256, uint256):
    """
    @notice Reads `stakes`, `weight` or `records`.
    """
    return packing._low(word), packing._high(word)


@external
@pure
def draw_word(terms: bytes32, attempt: uint256, draws: uint256) -> uint256:
    """
    @notice Packs `draw`.
    """
    return packing._pack_draw(terms, attempt, draws)


@external
@pure
def draw_fields(word: uint256, terms: bytes32) -> (bool, uint256, uint256):
    """
    @notice Reads `draw`, and says whether it holds these terms.
    """
    return packing._same_terms(word, terms), packing._attempt(word), packing._draws(word)


@external
@pure
def owner_word(operator: address, release_at: uint256, holds: uint256, capabilities: uint256) -> uint256:
    """
    @notice Packs `owner`.
    """
    return packing._pack_owner(operator, release_at, holds, capabilities)


@external
@pure
def owner_fields(word: uint256) -> (address, uint256, uint256, uint256):
    """
    @notice Reads `owner`.
    """
    return packing._account(word), packing._first(word), packing._holds(word), packing._capabilities(word)


@external
@pure
def listing_word(price: uint256, node_id: uint256, active: bool) -> uint256:
    """
    @notice Packs `listing`.
    """
    return packing._pack_listing(price, node_id, active)


@external
@pure
def listing_fields(word: uint256) -> (uint256, uint256, bool):
    """
    @notice Reads `listing`.
    """
    return packing._low(word), packing._node_of(word), packing._is_active(word)


@external
@pure
def rating_word(rating_sum: uint256, rating_count: uint256, unpaid_count: uint256) -> uint256:
    """
    @notice Packs `rating`.
    """
    return packing._pack_rating(rating_sum, rating_count, unpaid_count)


@external
@pure
def rating_fields(word: uint256) -> (uint256, uint256, uint256):
    """
    @notice Reads `rating`.
    """
    return packing._rating_sum(word), packing._rating_count(word), packing._unpaid_count(word)


@external
@pure
def dispute_word(claim: uint256, opened_at: uint256, status: uint8) -> uint256:
    """
    @notice Packs `dispute`.
    """
    return packing._pack_dispute(claim, opened_at, status)


@external
@pure
def dispute_fields(word: uint256) -> (uint256, uint256, uint8):
    """
    @notice Reads `dispute`.
    """
    return packing._low(word), packing._opened_at(word), packing._dispute_status(word)
