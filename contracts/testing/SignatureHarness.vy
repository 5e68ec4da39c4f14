# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Signature harness
@license Apache-2.0
@notice Checks signatures over digests that no contract forms. For tests only.
"""


from ..modules import signatures


@external
@pure
def recover(digest: bytes32, signature: Bytes[signatures.MAX_SIGNATURE]) -> address:
    """
    @notice Recovers the key behind a signature.
    """
    return signatures._recover(digest, signature)


@external
@view
def is_valid(signer: address, digest: bytes32, signature: Bytes[signatures.MAX_SIGNATURE]) -> bool:
    """
    @notice Says whether an account signed a digest.
    """
    return signatures._is_valid(signer, digest, signature)
