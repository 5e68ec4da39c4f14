# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Odd token
@license Apache-2.0
@notice A token of one of the kinds that break careless contracts, by mode. For tests only.
"""


SILENT: constant(uint256) = 1
FALSE: constant(uint256) = 2
FEE: constant(uint256) = 3
REFUSING: constant(uint256) = 4
CALLING: constant(uint256) = 5

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
    @param mode 1 returns nothing, 2 returns false and moves nothing, 3 takes one unit on the way, 4 reverts for one
           receiver, 5 calls back; 0 is plain.
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
    @notice Names the receiver that mode 4 refuses.
    """
    self.refused = receiver


@external
def call_back(target: address, data: Bytes[1024]):
    """
    @notice Sets what mode 5 calls during a transfer.
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
@view
def allowance(owner: address, spender: address) -> uint256:
    """
    @notice Everybody may send everything: approvals are not what these tests are about.
    """
    return max_value(uint256)


# The two functions that move tokens are answered here, since Vyper cannot leave a declared return out by mode.
@external
@raw_return
def __default__() -> Bytes[32]:
    """
    @notice transfer(address,uint256) and transferFrom(address,address,uint256).
    """
    sender: address = msg.sender
    receiver: address = empty(address)
    amount: uint256 = 0
    if slice(msg.data, 0, 4) == method_id("transfer(address,uint256)", output_type=Bytes[4]):
        receiver, amount = abi_decode(slice(msg.data, 4, 64), (address, uint256))
    else:
        assert slice(msg.data, 0, 4) == method_id("transferFrom(address,address,uint256)", output_type=Bytes[4])
        sender, receiver, amount = abi_decode(slice(msg.data, 4, 96), (address, address, uint256))
    if self.mode == FALSE:
        return abi_encode(False)
    assert self.mode != REFUSING or receiver != self.refused
    self._move(sender, receiver, amount)
    if self.mode == SILENT:
        return b""
    return abi_encode(True)


@internal
def _move(sender: address, receiver: address, amount: uint256):
    """
    @notice Moves tokens as the mode says.
    """
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
    if self.mode == FEE:
        self.balanceOf[receiver] -= 1
    if self.mode == CALLING:
        self.called = True
        self.reentered = raw_call(self.target, self.data, revert_on_failure=False)
