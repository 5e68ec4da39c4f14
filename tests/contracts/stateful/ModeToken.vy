# pragma version ~=0.4.3
# pragma evm-version cancun
"""
@title Mode token
@license Apache-2.0
@notice A token that is honest or hostile by its mode, with EIP-3009 and a block list. For the stateful test only.
"""


REFUSING: constant(uint256) = 1
SILENT: constant(uint256) = 2
FEE: constant(uint256) = 3
NO_RETURN: constant(uint256) = 4
CALLING: constant(uint256) = 5
RECEIVE_TYPE_HASH: constant(bytes32) = keccak256(
    "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
DOMAIN_TYPE_HASH: constant(bytes32) = keccak256("EIP712Domain(uint256 chainId,address verifyingContract)")

mode: public(uint256)
target: address
data: Bytes[1024]
answer: public(uint256)
balanceOf: public(HashMap[address, uint256])
blocked: public(HashMap[address, bool])
authorizationState: public(HashMap[address, HashMap[bytes32, bool]])


@external
def set_mode(mode: uint256, target: address, data: Bytes[1024]):
    """
    @notice Changes the kind: 1 refuses by false, 2 says true and moves nothing, 3 takes one unit of what is moved, 4
            returns nothing, 5 calls a target during every transfer.
    """
    self.mode = mode
    self.target = target
    self.data = data
    self.answer = 0


@external
def mint(receiver: address, amount: uint256):
    """
    @notice Makes tokens out of nothing.
    """
    self.balanceOf[receiver] += amount


@external
def set_blocked(account: address, blocked: bool):
    """
    @notice Blocks an account from sending and receiving, or lets it again.
    """
    self.blocked[account] = blocked


@external
@raw_return
def transfer(receiver: address, amount: uint256) -> Bytes[32]:
    """
    @notice Sends tokens of the caller.
    """
    return self._answer(self._move(msg.sender, receiver, amount))


@external
@raw_return
def transferFrom(sender: address, receiver: address, amount: uint256) -> Bytes[32]:
    """
    @notice Sends tokens of anybody: approvals are not what the test is about.
    """
    return self._answer(self._move(sender, receiver, amount))


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
    @notice Takes tokens of an account that signed that; a silent token accepts anything, as a fallback would.
    """
    if self.mode == SILENT:
        return
    assert receiver == msg.sender, "token: not the receiver"
    assert block.timestamp > valid_after, "token: not yet valid"
    assert block.timestamp < valid_before, "token: authorisation expired"
    assert not self.authorizationState[sender][nonce], "token: authorisation used"
    struct_hash: bytes32 = keccak256(
        abi_encode(RECEIVE_TYPE_HASH, sender, receiver, amount, valid_after, valid_before, nonce)
    )
    domain: bytes32 = keccak256(abi_encode(DOMAIN_TYPE_HASH, chain.id, self))
    assert self._signed(sender, keccak256(concat(b"\x19\x01", domain, struct_hash)), signature), "token: bad signature"
    self.authorizationState[sender][nonce] = True
    self._move(sender, receiver, amount)


@internal
@view
def _signed(signer: address, digest: bytes32, signature: Bytes[1024]) -> bool:
    """
    @notice Checks a key's signature of 65 bytes.
    """
    if len(signature) != 65:
        return False
    r: uint256 = extract32(signature, 0, output_type=uint256)
    s: uint256 = extract32(signature, 32, output_type=uint256)
    return ecrecover(digest, convert(slice(signature, 64, 1), uint256), r, s) == signer


@internal
def _move(sender: address, receiver: address, amount: uint256) -> bool:
    """
    @notice Moves tokens as the mode says.
    """
    if self.mode == REFUSING:
        return False
    if self.mode == SILENT:
        return True
    assert not self.blocked[sender] and not self.blocked[receiver], "token: blocked"
    assert self.balanceOf[sender] >= amount, "token: balance too small"
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
    if self.mode == FEE and amount > 0:
        self.balanceOf[receiver] -= 1
    if self.mode == CALLING:
        self.answer = 1
        if raw_call(self.target, self.data, revert_on_failure=False):
            self.answer = 2
    return True


@internal
@view
def _answer(moved: bool) -> Bytes[32]:
    """
    @notice What a transfer returns.
    """
    if self.mode == NO_RETURN:
        return b""
    return abi_encode(moved)
