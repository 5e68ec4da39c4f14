"""Blocks and logs as values, read from a node's JSON. Whatever does not have its form raises BadAnswerError."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eth_hash.auto import keccak

from indexer.errors import BadAnswerError

MAX_LOG_DATA = 2 + 2 * 65_536
"""Longest data of a log that is kept, in characters; ours have under 6,000."""

_HASH = re.compile(r"0x[0-9a-f]{64}")
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_QUANTITY = re.compile(r"0x[0-9a-f]{1,16}")
_BLOOM = re.compile(r"0x[0-9a-f]{512}")
_DATA = re.compile(r"0x[0-9a-f]*")
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True)
class Header:
    """A block's header; `timestamp` in seconds, `bloom` the 2048-bit filter of its logs."""

    number: int
    hash: str
    parent_hash: str
    timestamp: int
    bloom: int = 0


@dataclass(frozen=True, slots=True)
class Log:
    """A log as the chain holds it; all hex in lower case."""

    block_number: int
    log_index: int
    block_hash: str
    tx_hash: str
    tx_index: int
    address: str
    topics: tuple[str, ...]
    data: str


def _text(value: object, pattern: re.Pattern[str], what: str) -> str:
    if isinstance(value, str):
        lower = value.lower()
        if pattern.fullmatch(lower):
            return lower
    raise BadAnswerError(f"The node's answer holds no valid {what}; try another RPC address if this goes on.")


def parse_hash(value: object, what: str = "hash") -> str:
    """Read 32 bytes of hex."""
    return _text(value, _HASH, what)


def parse_quantity(value: object, what: str = "number") -> int:
    """Read a JSON-RPC quantity below 2^63."""
    number = int(_text(value, _QUANTITY, what), 16)
    if number >= _LIMIT:
        raise BadAnswerError(f"The node's answer holds a {what} past 2^63; try another RPC address.")
    return number


def parse_data(value: object, what: str = "data", limit: int = MAX_LOG_DATA) -> str:
    """Read hex of an even and bounded length."""
    if isinstance(value, str) and len(value) <= limit and len(value) % 2 == 0:
        return _text(value, _DATA, what)
    raise BadAnswerError(f"The node's answer holds no valid {what}; try another RPC address if this goes on.")


def parse_object(value: object, what: str) -> Mapping[str, object]:
    """Read a JSON object."""
    if isinstance(value, dict):
        return value
    raise BadAnswerError(f"The node's {what} is not an object; try another RPC address if this goes on.")


def parse_list(value: object, what: str) -> list[object]:
    """Read a JSON list."""
    if isinstance(value, list):
        return value
    raise BadAnswerError(f"The node's {what} is not a list; try another RPC address if this goes on.")


def parse_header(value: object) -> Header:
    """Read a block of eth_getBlockByNumber."""
    fields = parse_object(value, "block")
    return Header(
        number=parse_quantity(fields.get("number"), "block number"),
        hash=parse_hash(fields.get("hash"), "block hash"),
        parent_hash=parse_hash(fields.get("parentHash"), "parent hash"),
        timestamp=parse_quantity(fields.get("timestamp"), "timestamp"),
        bloom=int(_text(fields.get("logsBloom"), _BLOOM, "logs bloom"), 16),
    )


def parse_log(value: object) -> Log | None:
    """Read a log; None when the node marks it as removed by a reorg."""
    fields = parse_object(value, "log")
    if fields.get("removed") not in {None, False}:
        return None
    topics = parse_list(fields.get("topics"), "topics")
    if len(topics) > 4:
        raise BadAnswerError("The node's answer holds a log of over 4 topics; try another RPC address.")
    return Log(
        block_number=parse_quantity(fields.get("blockNumber"), "block number"),
        log_index=parse_quantity(fields.get("logIndex"), "log index"),
        block_hash=parse_hash(fields.get("blockHash"), "block hash"),
        tx_hash=parse_hash(fields.get("transactionHash"), "transaction hash"),
        tx_index=parse_quantity(fields.get("transactionIndex"), "transaction index"),
        address=_text(fields.get("address"), _ADDRESS, "address"),
        topics=tuple([parse_hash(topic, "topic") for topic in topics]),
        data=parse_data(fields.get("data"), "log data"),
    )


def bloom_bits(value: bytes) -> int:
    """Give the three bits that an address or topic sets in a header's bloom (yellow paper, section 4.3)."""
    digest = keccak(value)
    bits = 0
    for at in (0, 2, 4):
        bits |= 1 << (int.from_bytes(digest[at : at + 2], "big") & 2047)
    return bits


def bloom_of(logs: Iterable[Log]) -> int:
    """Compute the bloom of a block from all its logs."""
    values = {text for log in logs for text in (log.address, *log.topics)}
    bits = 0
    for text in values:
        bits |= bloom_bits(bytes.fromhex(text[2:]))
    return bits
