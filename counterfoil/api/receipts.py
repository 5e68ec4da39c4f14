"""Receipts over HTTP. Only what an indexed session commits to is kept: a session costs gas, so the disk is bounded."""

import re

import orjson

from counterfoil.api.problems import ProblemError
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import ReceiptError, digest_of, parse
from indexer import query
from indexer.query import Store

_ADDRESS = re.compile("0x[0-9a-f]{40}")


def keep(store: Store, receipts: ReceiptStore, data: bytes) -> tuple[str, bool]:
    """Keep a receipt's canonical bytes; gives the digest, and whether they were not there before.

    Raises ProblemError: bad-receipt for anything else, uncommitted where no session of its client commits to it.
    """
    digest = digest_of(data)
    if receipts.read(digest) == data:
        return digest, False
    # Drawing it again takes long: that is done for somebody's session only.
    if (client := _client_of(data)) is not None:
        _need_session(store, client, digest)
    _check(data)
    receipts.write(digest, data)
    return digest, True


def _client_of(data: bytes) -> str | None:
    try:
        client = orjson.loads(data)["request"]["client"]
    except (ValueError, LookupError, TypeError):
        return None
    return client if isinstance(client, str) and _ADDRESS.fullmatch(client) else None


def _check(data: bytes) -> None:
    try:
        parse(data)
    except ReceiptError as error:
        raise ProblemError("bad-receipt", str(error)) from error


def _need_session(store: Store, client: str, digest: str) -> None:
    answer = query.session_committed(store, client, digest)
    if answer.value is None:
        sentence = (
            f"no session of {client} commits to {digest} as of block {answer.as_of.block}: only receipts of indexed "
            "sessions are kept; open the session, or send this again once it is indexed"
        )
        raise ProblemError("uncommitted", sentence)
