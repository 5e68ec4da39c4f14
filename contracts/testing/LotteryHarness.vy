# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Lottery harness
@license Apache-2.0
@notice Calls the lottery module with markets as arguments, so that vectors can be compared. For tests only.
"""


from ..modules import lottery


@external
@pure
def weigh(
    candidates: DynArray[lottery.Candidate, lottery.MAX_CANDIDATES], price_cap: uint256
) -> (bool, DynArray[lottery.Terms, lottery.MAX_CANDIDATES]):
    """
    @notice Weighs a market.
    """
    return lottery._weigh(candidates, price_cap)


@external
@pure
def order(
    candidates: DynArray[lottery.Candidate, lottery.MAX_CANDIDATES], price_cap: uint256, seed: bytes32, length: uint256
) -> DynArray[uint256, lottery.MAX_LENGTH]:
    """
    @notice Weighs a market and draws an order.
    """
    relaxed: bool = False
    weighed: DynArray[lottery.Terms, lottery.MAX_CANDIDATES] = []
    relaxed, weighed = lottery._weigh(candidates, price_cap)
    return lottery._order(weighed, seed, length)
