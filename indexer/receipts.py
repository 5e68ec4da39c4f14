"""The receipts of a block and the root in its header that proves them (EIP-2718, yellow paper 4.3.1 and appendix D).

A root that matches proves which logs a block holds, in which order, with which address, topics and data. It does not
prove their transaction hashes, which stand as the node says them.
"""

from collections.abc import Sequence

from indexer.chain import parse_data, parse_hash, parse_list, parse_object, parse_quantity
from indexer.errors import BadAnswerError
from indexer.keccak import keccak

MAX_RECEIPTS = 100_000
"""Most receipts of one block that are read."""
BLOOM_LENGTH = 2 + 512
"""Characters of a bloom."""

_KNOWN_TYPES = range(5)  # legacy, access list, dynamic fee, blob, set code
_MAX_DATA = 2 + 2 * 16 * 2**20  # a log of any contract in the block, not only of ours

Item = bytes | list["Item"]
Nibbles = tuple[int, ...]


class UnknownReceiptError(Exception):
    """A receipt of a type whose encoding is not known here, such as a rollup's deposit; holds the type."""


def receipts_root(receipts: Sequence[object]) -> str:
    """Compute the root over the receipts of one block, given as the node's JSON in the order of their transactions.

    Raises UnknownReceiptError, BadAnswerError where a receipt is malformed.
    """
    if len(receipts) > MAX_RECEIPTS:
        raise BadAnswerError(f"The node gave over {MAX_RECEIPTS} receipts of one block; try another RPC address.")
    return "0x" + ordered_root([_encoded(receipt) for receipt in receipts]).hex()


def ordered_root(values: Sequence[bytes]) -> bytes:
    """Give the root of the Merkle Patricia trie that holds values under their positions."""
    if not values:
        return keccak(rlp(b""))
    return keccak(rlp(_node(sorted((_nibbles(rlp(_integer(at))), value) for at, value in enumerate(values)), 0)))


def rlp(item: Item) -> bytes:
    """Encode bytes, or a list of items, by the recursive length prefix (yellow paper, appendix B)."""
    if isinstance(item, list):
        body = b"".join([rlp(part) for part in item])
        return _length(0xC0, len(body)) + body
    if len(item) == 1 and item[0] < 0x80:
        return item
    return _length(0x80, len(item)) + item


def _encoded(value: object) -> bytes:
    receipt = parse_object(value, "receipt")
    kind = parse_quantity(receipt.get("type") or "0x0", "receipt type")
    if kind not in _KNOWN_TYPES:
        raise UnknownReceiptError(hex(kind))
    before_byzantium = receipt.get("status") is None
    payload = rlp(
        [
            _bytes(parse_hash(receipt.get("root"), "receipt's state root"))
            if before_byzantium
            else _integer(parse_quantity(receipt["status"], "receipt status")),
            _integer(parse_quantity(receipt.get("cumulativeGasUsed"), "gas")),
            _bytes(parse_data(receipt.get("logsBloom"), "receipt's bloom", BLOOM_LENGTH)),
            [_log(log) for log in parse_list(receipt.get("logs"), "receipt's logs")],
        ]
    )
    return bytes([kind]) + payload if kind else payload


def _log(value: object) -> Item:
    log = parse_object(value, "log")
    topics: list[Item] = [_bytes(parse_hash(topic, "topic")) for topic in parse_list(log.get("topics"), "topics")]
    return [
        _bytes(parse_data(log.get("address"), "address", 42)),
        topics,
        _bytes(parse_data(log.get("data"), "log data", _MAX_DATA)),
    ]


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _integer(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _length(base: int, length: int) -> bytes:
    if length < 56:
        return bytes([base + length])
    digits = _integer(length)
    return bytes([base + 55 + len(digits)]) + digits


def _nibbles(key: bytes) -> Nibbles:
    return tuple(nibble for byte in key for nibble in (byte >> 4, byte & 15))


def _node(pairs: Sequence[tuple[Nibbles, bytes]], depth: int) -> Item:
    """Build the node of these sorted pairs, which share their first `depth` nibbles. No key begins another one."""
    first, value = pairs[0]
    if len(pairs) == 1:
        return [_path(first[depth:], leaf=True), value]
    last, end = pairs[-1][0], depth
    while first[end] == last[end]:
        end += 1
    if end > depth:
        return [_path(first[depth:end], leaf=False), _reference(_node(pairs, end))]
    branch: list[Item] = [b""] * 17
    for nibble in range(16):
        below = [pair for pair in pairs if pair[0][depth] == nibble]
        if below:
            branch[nibble] = _reference(_node(below, depth + 1))
    return branch


def _reference(node: Item) -> Item:
    encoded = rlp(node)
    return node if len(encoded) < 32 else keccak(encoded)


def _path(nibbles: Nibbles, *, leaf: bool) -> bytes:
    flag = 2 * leaf + len(nibbles) % 2
    padded = (flag, *nibbles) if len(nibbles) % 2 else (flag, 0, *nibbles)
    return bytes([high * 16 + low for high, low in zip(padded[::2], padded[1::2], strict=True)])
