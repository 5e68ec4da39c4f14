"""Blocks and logs as values, read from a node's JSON. Whatever does not have its form raises BadAnswerError."""

import re
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

from indexer.errors import BadAnswerError
from indexer.keccak import keccak

MAX_LOG_DATA = 2 + 2 * 65_536
"""Longest data of a log that is kept, in characters; ours have under 6,000."""

_HASH = re.compile(r"0x[0-9a-f]{64}")
_QUANTITY = re.compile(r"0x[0-9a-f]{1,16}")
_BLOOM = re.compile(r"0x[0-9a-f]{512}")
_DATA = re.compile(r"0x[0-9a-f]*")
_LIMIT = 1 << 63
_HEX_DIGITS = b"0123456789abcdef"
_LOG_FIELDS = itemgetter("blockNumber", "logIndex", "transactionIndex", "blockHash", "transactionHash", "address")
_LOG_FORMS = [
    re.compile(
        " ".join([*["(0x.{1,16})"] * 3, *["(0x.{64})"] * 2, "(0x.{40})", *["(0x.{64})"] * topics, "(0x.*)"]), re.DOTALL
    )
    for topics in range(5)
]
"""A log's words by its number of topics, the data last. That they are hex is looked at apart, which is faster."""


class Header(NamedTuple):
    """A block's header; `timestamp` in seconds, `bloom` the 2048-bit filter of its logs.

    `receipts_root` is empty where a header comes from the store, which keeps no roots.
    """

    number: int
    hash: str
    parent_hash: str
    timestamp: int
    bloom: int = 0
    receipts_root: str = ""


class Log(NamedTuple):
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
        receipts_root=parse_hash(fields.get("receiptsRoot"), "receipts root"),
    )


def parse_log(value: object) -> Log | None:
    """Read a log; None when the node marks it as removed by a reorg."""
    fields = parse_object(value, "log")
    if fields.get("removed") not in (None, False):
        return None
    topics = parse_list(fields.get("topics"), "topics")
    try:
        return _log(" ".join([*_LOG_FIELDS(fields), *topics, fields["data"]]).lower(), len(topics))  # type: ignore[list-item]
    except (LookupError, TypeError, ValueError):
        raise BadAnswerError("The node's answer holds no valid log; try another RPC address if this goes on.") from None


def _log(text: str, topic_count: int) -> Log:
    """Read a log from the words of its fields; ValueError or LookupError when they do not have their form.

    There are as many spaces as the form has, and an x in each word: so no word can hold a space or a second x.
    """
    found = _LOG_FORMS[topic_count].fullmatch(text)
    if found is None or text.encode().translate(None, _HEX_DIGITS) != b"x x x x x x x x x x x"[: 13 + 2 * topic_count]:
        raise ValueError("a word is not hex")
    number, log_index, tx_index, block_hash, tx_hash, address, *topics, data = found.groups()
    places = int(number, 16), int(log_index, 16), int(tx_index, 16)
    if max(places) >= _LIMIT or len(data) > MAX_LOG_DATA or len(data) % 2:
        raise ValueError("a number or the data is too long")
    return Log(places[0], places[1], block_hash, tx_hash, places[2], address, tuple(topics), data)


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
