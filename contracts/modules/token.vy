# pragma version ~=0.4.3
"""
@title Token
@license Apache-2.0
@notice Moves an ERC-20 token that may return nothing or false, and refuses one that delivers less than was asked.
"""


from ethereum.ercs import IERC20


interface IAuthorizedToken:
    def receiveWithAuthorization(
        sender: address,
        receiver: address,
        amount: uint256,
        valid_after: uint256,
        valid_before: uint256,
        nonce: bytes32,
        signature: Bytes[MAX_SIGNATURE],
    ): nonpayable
    def authorizationState(authorizer: address, nonce: bytes32) -> bool: view


struct Authorization:
    amount: uint256
    valid_after: uint256
    valid_before: uint256


MAX_SIGNATURE: constant(uint256) = 1024


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
def _pull_authorized(
    token: IERC20, sender: address, authorization: Authorization, nonce: bytes32, signature: Bytes[MAX_SIGNATURE]
):
    """
    @notice Takes exactly the amount that an account authorised by a signature of EIP-3009. Unlike `_pull` it asks the
            token for an amount of 0 as well, since the signature may stand for more than the money.
    @dev    A token without EIP-3009 may have a fallback that accepts any call. Had it not to say that the call used the
            authorisation, an amount of 0 would pass for the consent of an account that signed nothing.
    """
    authorized: IAuthorizedToken = IAuthorizedToken(token.address)
    assert not staticcall authorized.authorizationState(sender, nonce), "token: authorisation already used"
    held: uint256 = staticcall token.balanceOf(self)
    extcall authorized.receiveWithAuthorization(
        sender,
        self,
        authorization.amount,
        authorization.valid_after,
        authorization.valid_before,
        nonce,
        signature,
    )
    assert staticcall authorized.authorizationState(sender, nonce), "token: authorisation not used"
    assert staticcall token.balanceOf(self) == held + authorization.amount, "token: wrong amount"


@internal
def _push(token: IERC20, receiver: address, amount: uint256):
    """
    @notice Sends an amount.
    """
    assert extcall token.transfer(receiver, amount, default_return_value=True), "token: transfer refused"
