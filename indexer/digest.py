"""A running keccak over what each block changed: two indexes agree, or name the first block where they differ.

digest(n) = keccak256(digest(n-1) || block number, 32 bytes || block hash || canonical lines of the block). A line
is a JSON array [table, values...] in ASCII without spaces; integers are decimal strings, so that no reader loses
digits. Versions come first, ordered by table and key, then facts and rejections by log index.
"""

import json
from collections.abc import Iterable

import orjson

from indexer.keccak import keccak
from indexer.project import Changes
from indexer.rows import Value, values_of

NO_DIGEST = "0x" + "00" * 32
"""What stands before the first block."""


def _line(table: str, values: Iterable[Value]) -> bytes:
    canonical = [str(value) if type(value) is int else value for value in values]
    line = orjson.dumps([table, *canonical], option=orjson.OPT_APPEND_NEWLINE)
    return line if line.isascii() else json.dumps([table, *canonical], separators=(",", ":")).encode() + b"\n"


def lines(changes: Changes) -> bytes:
    """Give the canonical lines of a block's changes."""
    versions = [_line(row.TABLE, values_of(row)) for row in changes.versions]
    facts = [_line(fact.TABLE, (log_index, *values_of(fact))) for log_index, fact in changes.facts]
    rejected = [_line("quarantine", rejection) for rejection in changes.rejections]
    return b"".join(versions + facts + rejected)


def next_digest(previous: str, number: int, block_hash: str, changes: Changes) -> str:
    """Give the digest of a block from the digest before it; both are 0x and 64 hex digits."""
    head = bytes.fromhex(previous[2:]) + number.to_bytes(32, "big") + bytes.fromhex(block_hash[2:])
    return "0x" + keccak(head + lines(changes)).hex()
