# pragma version ~=0.4.3
"""
@title Packing
@license Apache-2.0
@notice Lays out the hot records in storage words. Pure: nothing else knows the layout, and nothing here knows what
        the fields mean. Vyper does not pack storage itself, and a word saved is about 22,000 gas at an open.
@dev    Every field is checked against its width, so no neighbour can ever be written over. Bits are counted from the
        lowest.

        buyer    client 0-159      price 160-255
        seller   operator 0-159    service_id 160-207  node_id 208-255
        state    amount 0-127      calls 128-159       expires_at 160-199  turns_at 200-239  status 240-247  keyed 248
        draw     terms 0-159       attempt 160-191     draws 192-255
        owner    operator 0-159    release_at 160-207  holds 208-239   capabilities 240-255
        stakes   stake 0-127       unbonding 128-255
        listing  price 0-127       node_id 128-175     active 176
        dispute  claim 0-127       opened_at 128-175   status 176-183
        rating   sum 0-63          count 64-127        unpaid 128-191
        weight   paid 0-127        weighted 128-255
        records  cost 0-127        count 128-255
"""


MAX_16: constant(uint256) = 2 ** 16 - 1
MAX_32: constant(uint256) = 2 ** 32 - 1
MAX_40: constant(uint256) = 2 ** 40 - 1
MAX_48: constant(uint256) = 2 ** 48 - 1
MAX_64: constant(uint256) = 2 ** 64 - 1
MAX_96: constant(uint256) = 2 ** 96 - 1
MAX_128: constant(uint256) = 2 ** 128 - 1
MAX_160: constant(uint256) = 2 ** 160 - 1


@internal
@pure
def _field(word: uint256, offset: uint256, mask: uint256) -> uint256:
    """
    @notice Reads one field of a word.
    @param word The storage word.
    @param offset The field's lowest bit, below 256.
    @param mask The field's largest value.
    @return The field's value.
    """
    return (word >> offset) & mask


@internal
@pure
def _place(field: uint256, offset: uint256, mask: uint256) -> uint256:
    """
    @notice Shifts one field to its place.
    @param field The value; it must fit the field.
    @param offset The field's lowest bit, below 256.
    @param mask The field's largest value.
    @return The word with this field alone.
    """
    assert field <= mask, "packing: field too wide"
    return field << offset


@internal
@pure
def _account(word: uint256) -> address:
    """
    @notice Reads the account in the low 160 bits of a word.
    """
    return convert(word & MAX_160, address)


@internal
@pure
def _low_high(low: uint256, high: uint256) -> uint256:
    """
    @notice Packs two values of 128 bits.
    """
    return self._place(low, 0, MAX_128) | self._place(high, 128, MAX_128)


@internal
@pure
def _low(word: uint256) -> uint256:
    """
    @notice Reads the low 128 bits.
    """
    return word & MAX_128


@internal
@pure
def _high(word: uint256) -> uint256:
    """
    @notice Reads the high 128 bits.
    """
    return word >> 128


@internal
@pure
def _pack_account(account: address, first: uint256, second: uint256) -> uint256:
    """
    @notice Packs an account with two fields of 48 bits: the word of a session that names its operator.
    """
    low: uint256 = convert(account, uint256)
    return low | self._place(first, 160, MAX_48) | self._place(second, 208, MAX_48)


@internal
@pure
def _first(word: uint256) -> uint256:
    """
    @notice Reads the first 48-bit field behind an account: service_id of a session, release_at of a node.
    """
    return self._field(word, 160, MAX_48)


@internal
@pure
def _second(word: uint256) -> uint256:
    """
    @notice Reads the second 48-bit field behind an account: node_id of a session.
    """
    return self._field(word, 208, MAX_48)


@internal
@pure
def _pack_buyer(client: address, price: uint256) -> uint256:
    """
    @notice Packs the word of a session that names its client.
    """
    return convert(client, uint256) | self._place(price, 160, MAX_96)


@internal
@pure
def _price(word: uint256) -> uint256:
    """
    @notice Reads the price of a buyer word.
    """
    return word >> 160


@internal
@pure
def _pack_state(
    amount: uint256, calls: uint256, expires_at: uint256, turns_at: uint256, status: uint256, keyed: bool
) -> uint256:
    """
    @notice Packs all that changes in a session.
    """
    low: uint256 = self._place(amount, 0, MAX_128) | self._place(calls, 128, MAX_32)
    times: uint256 = self._place(expires_at, 160, MAX_40) | self._place(turns_at, 200, MAX_40)
    return low | times | self._place(status, 240, 255) | (convert(keyed, uint256) << 248)


@internal
@pure
def _calls(word: uint256) -> uint256:
    """
    @notice Reads the calls of a state word.
    """
    return self._field(word, 128, MAX_32)


@internal
@pure
def _expires_at(word: uint256) -> uint256:
    """
    @notice Reads when a state word's session expires.
    """
    return self._field(word, 160, MAX_40)


@internal
@pure
def _turns_at(word: uint256) -> uint256:
    """
    @notice Reads the time of a state word's status: when it closes, or when it was settled.
    """
    return self._field(word, 200, MAX_40)


@internal
@pure
def _status(word: uint256) -> uint256:
    """
    @notice Reads the status of a state word.
    """
    return self._field(word, 240, 255)


@internal
@pure
def _is_keyed(word: uint256) -> bool:
    """
    @notice Reads whether a key other than the client's signs the session's vouchers.
    """
    return self._field(word, 248, 1) == 1


@internal
@pure
def _pack_draw(terms: bytes32, attempt: uint256, draws: uint256) -> uint256:
    """
    @notice Packs a client's latest draw: 160 bits of the hash of its terms, the last attempt, and the draws so far.
    """
    low: uint256 = convert(terms, uint256) & MAX_160
    return low | self._place(attempt, 160, MAX_32) | self._place(draws, 192, MAX_64)


@internal
@pure
def _same_terms(word: uint256, terms: bytes32) -> bool:
    """
    @notice Says whether a draw word holds these terms.
    """
    return word & MAX_160 == convert(terms, uint256) & MAX_160


@internal
@pure
def _attempt(word: uint256) -> uint256:
    """
    @notice Reads the last attempt of a draw word.
    """
    return self._field(word, 160, MAX_32)


@internal
@pure
def _draws(word: uint256) -> uint256:
    """
    @notice Reads the number of draws of a draw word.
    """
    return word >> 192


@internal
@pure
def _pack_owner(operator: address, release_at: uint256, holds: uint256, capabilities: uint256) -> uint256:
    """
    @notice Packs the word of a node that names its operator.
    """
    low: uint256 = convert(operator, uint256) | self._place(release_at, 160, MAX_48)
    return low | self._place(holds, 208, MAX_32) | self._place(capabilities, 240, MAX_16)


@internal
@pure
def _holds(word: uint256) -> uint256:
    """
    @notice Reads the number of holds of an owner word.
    """
    return self._field(word, 208, MAX_32)


@internal
@pure
def _capabilities(word: uint256) -> uint256:
    """
    @notice Reads the number of capabilities of an owner word.
    """
    return word >> 240


@internal
@pure
def _pack_listing(price: uint256, node_id: uint256, active: bool) -> uint256:
    """
    @notice Packs a listing.
    """
    low: uint256 = self._place(price, 0, MAX_128) | self._place(node_id, 128, MAX_48)
    return low | (convert(active, uint256) << 176)


@internal
@pure
def _node_of(word: uint256) -> uint256:
    """
    @notice Reads the node of a listing word.
    """
    return self._field(word, 128, MAX_48)


@internal
@pure
def _is_active(word: uint256) -> bool:
    """
    @notice Reads the active flag of a listing word.
    """
    return self._field(word, 176, 1) == 1


@internal
@pure
def _pack_dispute(claim: uint256, opened_at: uint256, status: uint8) -> uint256:
    """
    @notice Packs a dispute.
    """
    low: uint256 = self._place(claim, 0, MAX_128) | self._place(opened_at, 128, MAX_48)
    return low | self._place(convert(status, uint256), 176, 255)


@internal
@pure
def _opened_at(word: uint256) -> uint256:
    """
    @notice Reads when a dispute was opened.
    """
    return self._field(word, 128, MAX_48)


@internal
@pure
def _dispute_status(word: uint256) -> uint8:
    """
    @notice Reads the status of a dispute.
    """
    return convert(self._field(word, 176, 255), uint8)


@internal
@pure
def _pack_rating(rating_sum: uint256, rating_count: uint256, unpaid_count: uint256) -> uint256:
    """
    @notice Packs the rating of a node.
    """
    low: uint256 = self._place(rating_sum, 0, MAX_64) | self._place(rating_count, 64, MAX_64)
    return low | self._place(unpaid_count, 128, MAX_64)


@internal
@pure
def _rating_sum(word: uint256) -> uint256:
    """
    @notice Reads the sum of a rating word.
    """
    return self._field(word, 0, MAX_64)


@internal
@pure
def _rating_count(word: uint256) -> uint256:
    """
    @notice Reads the count of a rating word.
    """
    return self._field(word, 64, MAX_64)


@internal
@pure
def _unpaid_count(word: uint256) -> uint256:
    """
    @notice Reads the unpaid count of a rating word.
    """
    return self._field(word, 128, MAX_64)
