# pragma version ~=0.4.3
# pragma evm-version cancun
# pragma nonreentrancy on
"""
@title Test token
@license Apache-2.0
@notice An ERC-20 with 6 decimals, permits (EIP-2612), authorisations (EIP-3009, as bytes signatures) and a block list,
        like the dollar tokens in use. Anyone may mint and block: for local chains and tests only.
"""


from ethereum.ercs import IERC20
from ..modules import signatures

implements: IERC20


NAME: constant(String[16]) = "Test dollar"
VERSION: constant(String[8]) = "2"
MAX_SIGNATURE: constant(uint256) = 1024
DOMAIN_TYPE_HASH: constant(bytes32) = keccak256(
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
)
PERMIT_TYPE_HASH: constant(bytes32) = keccak256(
    "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
)
TRANSFER_TYPE_HASH: constant(bytes32) = keccak256(
    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
RECEIVE_TYPE_HASH: constant(bytes32) = keccak256(
    "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
)
CANCEL_TYPE_HASH: constant(bytes32) = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)")

totalSupply: public(uint256)
balanceOf: public(HashMap[address, uint256])
allowance: public(HashMap[address, HashMap[address, uint256]])
nonces: public(HashMap[address, uint256])
authorizationState: public(HashMap[address, HashMap[bytes32, bool]])
blocked: public(HashMap[address, bool])


event AuthorizationUsed:
    authorizer: indexed(address)
    nonce: indexed(bytes32)


@external
def mint(receiver: address, amount: uint256):
    """
    @notice Makes tokens out of nothing.
    """
    self.totalSupply += amount
    self.balanceOf[receiver] += amount
    log IERC20.Transfer(sender=empty(address), receiver=receiver, value=amount)


@external
def set_blocked(account: address, blocked: bool):
    """
    @notice Blocks an account from sending and receiving, or lets it again.
    """
    self.blocked[account] = blocked


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
    self._approve(msg.sender, spender, amount)
    return True


@external
def permit(owner: address, spender: address, amount: uint256, deadline: uint256, signature: Bytes[MAX_SIGNATURE]):
    """
    @notice Lets an account send tokens of the owner, who signed that.
    """
    assert block.timestamp <= deadline, "token: permit expired"
    nonce: uint256 = self.nonces[owner]
    self.nonces[owner] = nonce + 1
    self._check(owner, keccak256(abi_encode(PERMIT_TYPE_HASH, owner, spender, amount, nonce, deadline)), signature)
    self._approve(owner, spender, amount)


@external
def transferWithAuthorization(
    sender: address,
    receiver: address,
    amount: uint256,
    valid_after: uint256,
    valid_before: uint256,
    nonce: bytes32,
    signature: Bytes[MAX_SIGNATURE],
):
    """
    @notice Sends tokens of an account that signed that. Anyone may carry it here.
    """
    self._authorize(TRANSFER_TYPE_HASH, sender, receiver, amount, valid_after, valid_before, nonce, signature)
    self._move(sender, receiver, amount)


@external
def receiveWithAuthorization(
    sender: address,
    receiver: address,
    amount: uint256,
    valid_after: uint256,
    valid_before: uint256,
    nonce: bytes32,
    signature: Bytes[MAX_SIGNATURE],
):
    """
    @notice Takes tokens of an account that signed that. The receiver alone may carry it here.
    """
    assert receiver == msg.sender, "token: not the receiver"
    self._authorize(RECEIVE_TYPE_HASH, sender, receiver, amount, valid_after, valid_before, nonce, signature)
    self._move(sender, receiver, amount)


@external
def cancelAuthorization(authorizer: address, nonce: bytes32, signature: Bytes[MAX_SIGNATURE]):
    """
    @notice Uses up an authorisation without a transfer.
    """
    assert not self.authorizationState[authorizer][nonce], "token: authorisation used"
    self._check(authorizer, keccak256(abi_encode(CANCEL_TYPE_HASH, authorizer, nonce)), signature)
    self.authorizationState[authorizer][nonce] = True


@external
@pure
def name() -> String[16]:
    """
    @notice The token's name.
    """
    return NAME


@external
@pure
def symbol() -> String[8]:
    """
    @notice The token's symbol.
    """
    return "TUSD"


@external
@pure
def version() -> String[8]:
    """
    @notice The version of the EIP-712 domain.
    """
    return VERSION


@external
@pure
def decimals() -> uint8:
    """
    @notice How many decimals a whole token has.
    """
    return 6


@external
@view
def DOMAIN_SEPARATOR() -> bytes32:
    """
    @notice The EIP-712 domain of permits and authorisations.
    """
    return self._domain_separator()


@internal
@view
def _domain_separator() -> bytes32:
    """
    @notice Forms the EIP-712 domain separator.
    """
    return keccak256(abi_encode(DOMAIN_TYPE_HASH, keccak256(NAME), keccak256(VERSION), chain.id, self))


@internal
@view
def _check(signer: address, struct_hash: bytes32, signature: Bytes[MAX_SIGNATURE]):
    """
    @notice Asserts that an account signed a struct.
    """
    digest: bytes32 = keccak256(concat(b"\x19\x01", self._domain_separator(), struct_hash))
    assert signatures._is_valid(signer, digest, signature), "token: bad signature"


@internal
def _authorize(
    type_hash: bytes32,
    sender: address,
    receiver: address,
    amount: uint256,
    valid_after: uint256,
    valid_before: uint256,
    nonce: bytes32,
    signature: Bytes[MAX_SIGNATURE],
):
    """
    @notice Checks an authorisation and uses it up.
    """
    assert block.timestamp > valid_after, "token: not yet valid"
    assert block.timestamp < valid_before, "token: authorisation expired"
    assert not self.authorizationState[sender][nonce], "token: authorisation used"
    self._check(
        sender, keccak256(abi_encode(type_hash, sender, receiver, amount, valid_after, valid_before, nonce)), signature
    )
    self.authorizationState[sender][nonce] = True
    log AuthorizationUsed(authorizer=sender, nonce=nonce)


@internal
def _approve(owner: address, spender: address, amount: uint256):
    """
    @notice Sets an allowance.
    """
    assert not self.blocked[owner] and not self.blocked[spender], "token: blocked"
    self.allowance[owner][spender] = amount
    log IERC20.Approval(owner=owner, spender=spender, value=amount)


@internal
def _move(sender: address, receiver: address, amount: uint256):
    """
    @notice Moves tokens.
    """
    assert not self.blocked[sender] and not self.blocked[receiver], "token: blocked"
    assert self.balanceOf[sender] >= amount, "token: balance too small"
    self.balanceOf[sender] -= amount
    self.balanceOf[receiver] += amount
    log IERC20.Transfer(sender=sender, receiver=receiver, value=amount)
