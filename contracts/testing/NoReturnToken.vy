# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Token without return values
@license Apache-2.0
@notice A token whose transfers return nothing, as some that are widely held do. For tests only.
"""


balanceOf: public(HashMap[address, uint256])


@external
def mint(receiver: address, amount: uint256):
    """
    @notice Makes tokens out of nothing.
    """
    self.balanceOf[receiver] += amount


@external
def transfer(receiver: address, amount: uint256):
    """
    @notice Sends tokens of the caller.
    """
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount


@external
def transferFrom(sender: address, receiver: address, amount: uint256):
    """
    @notice Sends tokens of anybody: approvals are not what these tests are about.
    """
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
