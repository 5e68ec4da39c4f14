# pragma version ~=0.4.3
# pragma evm-version cancun
"""
@title Key wallet
@license Apache-2.0
@notice A wallet contract by ERC-1271 that approves the digest itself as its signature. For the stateful test only.
"""


MAGIC: constant(bytes4) = 0x1626ba7e


@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[1024]) -> bytes4:
    """
    @notice Approves where the signature is the digest.
    """
    if len(signature) == 32 and convert(slice(signature, 0, 32), bytes32) == digest:
        return MAGIC
    return empty(bytes4)
