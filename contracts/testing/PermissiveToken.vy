# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Token with a permissive fallback
@license Apache-2.0
@notice A token that knows no authorisations, and whose fallback accepts every call all the same. For tests only.
"""


NOTHING: constant(uint256) = 1
ONE: constant(uint256) = 2

mode: public(uint256)
balanceOf: public(HashMap[address, uint256])


@deploy
def __init__(mode: uint256):
    """
    @param mode What the fallback answers: 1 nothing, 2 a word that says 1, 3 a word that says 0.
    """
    self.mode = mode


@external
def mint(receiver: address, amount: uint256):
    """
    @notice Makes tokens out of nothing.
    """
    self.balanceOf[receiver] += amount


@external
def transfer(receiver: address, amount: uint256) -> bool:
    """
    @notice Sends tokens of the caller.
    """
    self.balanceOf[msg.sender] -= amount
    self.balanceOf[receiver] += amount
    return True


@external
def transferFrom(sender: address, receiver: address, amount: uint256) -> bool:
    """
    @notice Sends tokens of anybody: approvals are not what these tests are about.
    """
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
    return True


@external
@payable
@reentrant
@raw_return
def __default__() -> Bytes[32]:
    """
    @notice Answers whatever is asked as the mode says.
    """
    if self.mode == NOTHING:
        return b""
    if self.mode == ONE:
        return abi_encode(True)
    return abi_encode(False)
