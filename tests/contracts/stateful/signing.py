"""Signatures of the model as bytes: typed data formed by hand, field by field."""

from eth_abi import encode
from eth_account import Account
from eth_utils import keccak

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
DOMAIN = keccak(text="EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
TOKEN_DOMAIN = keccak(text="EIP712Domain(uint256 chainId,address verifyingContract)")
STRUCTS = {
    "Voucher": "bytes32 sessionId,uint256 amount,uint256 calls",
    "Rating": "bytes32 sessionId,uint8 score",
    "Experience": "bytes32 sessionId,string tool,string need,string task,bool worked,uint32 calls,uint32 failures,"
    "uint8 judgeScore,uint32 latencyMs,uint256 cost,string message,string note",
    "ReceiveWithAuthorization": "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
    "bytes32 nonce",
}


def word_of(typ, entry):
    """One field as it enters a struct's hash."""
    return keccak(text=entry) if typ == "string" else encode([typ], [entry])


def struct_hash(message):
    """The EIP-712 hash of a struct."""
    members = STRUCTS[message.kind]
    types = [member.split()[0] for member in members.split(",")]
    words = [word_of(typ, entry) for typ, entry in zip(types, message.fields, strict=True)]
    return keccak(keccak(text=f"{message.kind}({members})") + b"".join(words))


def domain(message, chain_id):
    """The domain of the contract that a message is for."""
    if message.kind == "ReceiveWithAuthorization":
        return keccak(encode(["bytes32", "uint256", "address"], [TOKEN_DOMAIN, chain_id, message.contract]))
    words = [DOMAIN, keccak(text="Counterfoil"), keccak(text="1"), chain_id, message.contract]
    return keccak(encode(["bytes32", "bytes32", "bytes32", "uint256", "address"], words))


def signed(signature, chain_id, keys):
    """The bytes of a signature. Who has no key is a wallet contract, which signs with the digest itself."""
    if signature is None:
        return b""
    digest = keccak(b"\x19\x01" + domain(signature.message, chain_id) + struct_hash(signature.message))
    if signature.signer not in keys:
        return digest if signature.sound else digest[:31]
    signature_bytes = bytes(Account.unsafe_sign_hash(digest, keys[signature.signer]).signature)
    return signature_bytes if signature.sound else tampered(signature_bytes)


def tampered(signature):
    """The other signature of the same key over the same digest, with a high s."""
    s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])
