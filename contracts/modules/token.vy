# pragma version ~=0.4.3
"""
@title Token
@license Apache-2.0
@notice Moves an ERC-20 token that may return nothing or false, and refuses one that delivers less than was asked.
"""


from ethereum.ercs import IERC20


@internal
def _pull(token: IERC20, sender: address, amount: uint256):
    """
    @notice Takes an amount from an account, which must have approved it.
    @dev    The balance is compared, so a token that takes a fee on the way is refused: the books equal the balance.
    """
    if amount == 0:
        return
    held: uint256 = staticcall token.balanceOf(self)
    assert extcall token.transferFrom(sender, self, amount, default_return_value=True), "token: transfer refused"
    assert staticcall token.balanceOf(self) == held + amount, "token: wrong amount"


@internal
def _push(token: IERC20, receiver: address, amount: uint256):
    """
    @notice Sends an amount.
    """
    assert extcall token.transfer(receiver, amount, default_return_value=True), "token: transfer refused"
