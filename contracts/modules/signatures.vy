# pragma version ~=0.4.3
"""
@title Signatures
@license Apache-2.0
@notice EIP-712 digests, and the check of a signature: the key first, so that an EIP-7702 account signs with its own
        key, then ERC-1271 by a static call that may revert or return rubbish.
@dev    The domain is formed at every call, so a fork of the chain has another one.
"""


DOMAIN_TYPE_HASH: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
NAME_HASH: constant(bytes32) = keccak256("Counterfoil")
VERSION_HASH: constant(bytes32) = keccak256("1")
MAX_S: constant(uint256) = 57896044618658097711785492504343953926418782139537452191302581570759080747168
MAGIC: constant(bytes4) = 0x1626ba7e
MAX_SIGNATURE: constant(uint256) = 1024


@internal
@view
def _domain_separator() -> bytes32:
    """
    @notice Forms the EIP-712 domain separator of the contract that uses this module.
    """
    return keccak256(abi_encode(DOMAIN_TYPE_HASH, NAME_HASH, VERSION_HASH, chain.id, self))


@internal
@view
def _digest(struct_hash: bytes32) -> bytes32:
    """
    @notice Forms the digest that is signed for a struct.
    """
    return keccak256(concat(b"\x19\x01", self._domain_separator(), struct_hash))


@internal
@pure
def _recover(digest: bytes32, signature: Bytes[MAX_SIGNATURE]) -> address:
    """
    @notice Recovers the key behind a signature.
    @dev    The empty address stands for every signature that is malformed, high-s included.
    """
    if len(signature) != 65:
        return empty(address)
    r: uint256 = extract32(signature, 0, output_type=uint256)
    s: uint256 = extract32(signature, 32, output_type=uint256)
    v: uint256 = convert(slice(signature, 64, 1), uint256)
    if s > MAX_S:
        return empty(address)
    return ecrecover(digest, v, r, s)


@internal
@view
def _approves(wallet: address, digest: bytes32, signature: Bytes[MAX_SIGNATURE]) -> bool:
    """
    @notice Asks a wallet contract by ERC-1271. Whatever it does, this call does not revert.
    """
    if not wallet.is_contract:
        return False
    data: Bytes[MAX_SIGNATURE + 132] = abi_encode(digest, signature, method_id=MAGIC)
    success: bool = False
    response: Bytes[32] = b""
    success, response = raw_call(wallet, data, max_outsize=32, is_static_call=True, revert_on_failure=False)
    if not success or len(response) != 32:
        return False
    return convert(response, bytes32) == convert(MAGIC, bytes32)


@internal
@view
def _is_valid(signer: address, digest: bytes32, signature: Bytes[MAX_SIGNATURE]) -> bool:
    """
    @notice Says whether an account signed a digest.
    """
    if signer == empty(address):
        return False
    if self._recover(digest, signature) == signer:
        return True
    return self._approves(signer, digest, signature)
