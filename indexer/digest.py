"""A running keccak over what each block changed: two indexes agree, or name the first block where they differ.

digest(n) = keccak256(digest(n-1) || block number, 32 bytes || block hash || canonical lines of the block). A line
is a JSON array [table, values...] in ASCII without spaces; integers are decimal strings, so that no reader loses
digits. Versions come first, ordered by table and key, then facts and rejections by log index.
"""

import json

from eth_hash.auto import keccak

from indexer.project import Changes
from indexer.rows import Row, Value, values_of

NO_DIGEST = "0x" + "00" * 32
"""What stands before the first block."""


def _canonical(value: Value) -> str | bool:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _line(table: str, *values: Value) -> bytes:
    return json.dumps([table, *map(_canonical, values)], separators=(",", ":")).encode() + b"\n"


def _row_line(row: Row, *place: int) -> bytes:
    return _line(row.TABLE, *place, *values_of(row))


def lines(changes: Changes) -> bytes:
    """Give the canonical lines of a block's changes."""
    versions = b"".join(_row_line(row) for row in changes.versions)
    facts = b"".join(_row_line(item.fact, item.log_index) for item in changes.facts)
    rejected = b"".join(_line("quarantine", item.log_index, item.reason) for item in changes.rejections)
    return versions + facts + rejected


def next_digest(previous: str, number: int, block_hash: str, changes: Changes) -> str:
    """Give the digest of a block from the digest before it; both are 0x and 64 hex digits."""
    head = bytes.fromhex(previous[2:]) + number.to_bytes(32, "big") + bytes.fromhex(block_hash[2:])
    return "0x" + keccak(head + lines(changes)).hex()
