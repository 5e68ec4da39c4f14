# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Test token
@license Apache-2.0
@notice A plain ERC-20 with 6 decimals that anyone may mint: for local chains and tests only.
"""


from ethereum.ercs import IERC20

implements: IERC20

name: public(constant(String[16])) = "Test dollar"
symbol: public(constant(String[8])) = "TUSD"
decimals: public(constant(uint8)) = 6
totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])


@external
def mint(receiver: address, amount: uint256):
    """
    @notice Makes tokens out of nothing.
    """
    self.totalSupply += amount
    self.balanceOf[receiver] += amount
    log IERC20.Transfer(sender=empty(address), receiver=receiver, value=amount)


@external
def transfer(receiver: address, amount: uint256) -> bool:
    """
    @notice Sends tokens of the caller.
    """
    self._move(msg.sender, receiver, amount)
    return True


@external
def transferFrom(sender: address, receiver: address, amount: uint256) -> bool:
    """
    @notice Sends tokens of an account that approved the caller.
    """
    assert self.allowance[sender][msg.sender] >= amount, "token: allowance too small"
    self.allowance[sender][msg.sender] -= amount
    self._move(sender, receiver, amount)
    return True


@external
def approve(spender: address, amount: uint256) -> bool:
    """
    @notice Lets an account send tokens of the caller.
    """
    self.allowance[msg.sender][spender] = amount
    log IERC20.Approval(owner=msg.sender, spender=spender, value=amount)
    return True


@internal
def _move(sender: address, receiver: address, amount: uint256):
    """
    @notice Moves tokens.
    """
    assert self.balanceOf[sender] >= amount, "token: balance too small"
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
    log IERC20.Transfer(sender=sender, receiver=receiver, value=amount)
