# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Odd token
@license Apache-2.0
@notice A token of one of the kinds that break careless contracts, by mode. For tests only.
@dev    Its transfers are not locked: what a call back finds locked must be the contract that is tried.
"""


LYING: constant(uint256) = 1
FEE: constant(uint256) = 2
REFUSING: constant(uint256) = 3
CALLING: constant(uint256) = 4

mode: public(uint256)
refused: public(address)
target: address
data: Bytes[1024]
called: public(bool)
reentered: public(bool)
balanceOf: public(HashMap[address, uint256])


@deploy
def __init__(mode: uint256):
    """
    @param mode 1 returns false and moves nothing, 2 takes one unit on the way, 3 reverts for one receiver, 4 calls back;
           0 is plain.
    """
    self.mode = mode


@external
def set_mode(mode: uint256):
    """
    @notice Changes the kind.
    """
    self.mode = mode


@external
def refuse(receiver: address):
    """
    @notice Names the receiver that mode 3 refuses.
    """
    self.refused = receiver


@external
def call_back(target: address, data: Bytes[1024]):
    """
    @notice Sets what mode 4 calls during a transfer.
    """
    self.target = target
    self.data = data


@external
def mint(receiver: address, amount: uint256):
    """
    @notice Makes tokens out of nothing.
    """
    self.balanceOf[receiver] += amount


@external
@reentrant
def transfer(receiver: address, amount: uint256) -> bool:
    """
    @notice Sends tokens of the caller.
    """
    return self._move(msg.sender, receiver, amount)


@external
@reentrant
def transferFrom(sender: address, receiver: address, amount: uint256) -> bool:
    """
    @notice Sends tokens of anybody: approvals are not what these tests are about.
    """
    return self._move(sender, receiver, amount)


@internal
def _move(sender: address, receiver: address, amount: uint256) -> bool:
    """
    @notice Moves tokens as the mode says.
    """
    if self.mode == LYING:
        return False
    assert self.mode != REFUSING or receiver != self.refused
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
    if self.mode == FEE:
        self.balanceOf[receiver] -= 1
    if self.mode == CALLING:
        self.called = True
        self.reentered = raw_call(self.target, self.data, revert_on_failure=False)
    return True
