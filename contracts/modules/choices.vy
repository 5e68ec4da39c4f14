# pragma version ~=0.4.3
"""
@title Choices
@license Apache-2.0
@notice What a client says of how it chose a service, and whether that can be: the snapshot, the seed, and the order of
        draws and attempts.
@dev    A client's draws are kept in one word, which only `packing` can read. The reasons are the session manager's.
"""


from . import packing


struct Choice:
    policy: uint8
    nonce: uint256
    attempt: uint256
    snapshot_block: uint256
    snapshot_hash: bytes32
    price_cap: uint256
    decision: bytes32


MAX_ATTEMPTS: constant(uint256) = 2 ** 32


@internal
@view
def _check_snapshot(choice: Choice, max_age: uint256):
    """
    @notice Asserts that the choice was made on a recent block of this chain.
    @param choice The choice.
    @param max_age Blocks that the snapshot may be old; 256 at the most, since the chain forgets older hashes.
    """
    assert choice.snapshot_block < block.number, "sessions: snapshot not in the past"
    assert block.number - choice.snapshot_block <= max_age, "sessions: snapshot too old"
    assert choice.snapshot_hash != empty(bytes32), "sessions: empty snapshot hash"
    assert blockhash(choice.snapshot_block) == choice.snapshot_hash, "sessions: snapshot not on this chain"


@internal
@pure
def _seed(snapshot_hash: bytes32, client: address, nonce: uint256, category_id: bytes32) -> bytes32:
    """
    @notice Forms the seed of a draw, which is the same for all its attempts.
    """
    return keccak256(abi_encode(snapshot_hash, client, nonce, category_id))


@internal
@pure
def _next_draw(latest: uint256, draw_seed: bytes32, choice: Choice) -> uint256:
    """
    @notice Starts a draw or continues the latest one, which must keep its seed, snapshot, cap and policy.
    @param latest The word of the client's latest draw; 0 where it has drawn nothing yet.
    @param draw_seed The seed of the choice.
    @param choice The choice.
    @return The word that takes its place.
    """
    assert choice.attempt < MAX_ATTEMPTS, "sessions: attempt too large"
    draws: uint256 = packing._draws(latest)
    terms: bytes32 = keccak256(abi_encode(draw_seed, choice.policy, choice.snapshot_block, choice.price_cap))
    if choice.nonce == draws:
        draws += 1
    else:
        assert draws > 0 and choice.nonce == draws - 1, "sessions: wrong nonce"
        assert packing._same_terms(latest, terms), "sessions: not the latest draw"
        assert choice.attempt > packing._attempt(latest), "sessions: attempt not later"
    return packing._pack_draw(terms, choice.attempt, draws)
