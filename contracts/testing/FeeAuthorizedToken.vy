# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Token with authorisations and a fee
@license Apache-2.0
@notice A token that takes an unsigned authorisation in its time, and keeps one unit of what it moves by it. For tests only.
"""


balanceOf: public(HashMap[address, uint256])
authorizationState: public(HashMap[address, HashMap[bytes32, bool]])


@external
def mint(receiver: address, amount: uint256):
    """
    @notice Makes tokens out of nothing.
    """
    self.balanceOf[receiver] += amount


@external
def transferFrom(sender: address, receiver: address, amount: uint256) -> bool:
    """
    @notice Sends tokens of anybody: approvals are not what these tests are about.
    """
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
    return True


@external
def receiveWithAuthorization(
    sender: address,
    receiver: address,
    amount: uint256,
    valid_after: uint256,
    valid_before: uint256,
    nonce: bytes32,
    signature: Bytes[1024],
):
    """
    @notice Sends one unit less than was authorised.
    """
    assert block.timestamp > valid_after and block.timestamp < valid_before, "token: not its time"
    assert len(signature) == 0, "token: signed"
    self.authorizationState[sender][nonce] = True
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount - 1
