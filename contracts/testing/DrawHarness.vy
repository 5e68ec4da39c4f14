# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Draw harness
@license Apache-2.0
@notice Calls the walk of the lottery with sums that no draw gives it. For tests only.
"""


from ..modules import lottery


@external
@pure
def find(pulls: DynArray[uint256, lottery.MAX_CANDIDATES], r: uint256) -> uint256:
    """
    @notice Finds the position that a draw falls on.
    """
    return lottery._find(pulls, r)
