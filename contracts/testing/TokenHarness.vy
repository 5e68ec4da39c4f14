# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Token harness
@license Apache-2.0
@notice Pulls from whomever it is told, which the contracts do of their callers alone. For tests only.
"""


from ethereum.ercs import IERC20

from ..modules import token


@external
def pull(payment: IERC20, sender: address, amount: uint256):
    """
    @notice Takes an amount from an account.
    """
    token._pull(payment, sender, amount)
