"""Receipts over HTTP. Only what an indexed session commits to is kept: a session costs gas, so the disk is bounded."""

from counterfoil.api.problems import ProblemError
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import Receipt, ReceiptError, digest_of, parse
from indexer import query
from indexer.query import Store


def keep(store: Store, receipts: ReceiptStore, data: bytes) -> tuple[str, bool]:
    """Keep a receipt's canonical bytes; gives the digest, and whether they were not there before.

    Raises ProblemError: bad-receipt for anything else, uncommitted where no session of its client commits to it.
    """
    digest = digest_of(data)
    if receipts.read(digest) == data:
        return digest, False
    receipt = _parsed(data)
    _need_session(store, receipt, digest)
    receipts.write(digest, data)
    return digest, True


def _parsed(data: bytes) -> Receipt:
    try:
        return parse(data)
    except ReceiptError as error:
        raise ProblemError("bad-receipt", str(error)) from error


def _need_session(store: Store, receipt: Receipt, digest: str) -> None:
    client = receipt.request.client
    answer = query.session_committed(store, client, digest)
    if answer.value is None:
        sentence = (
            f"no session of {client} commits to {digest} as of block {answer.as_of.block}: only receipts of indexed "
            "sessions are kept; open the session, or send this again once it is indexed"
        )
        raise ProblemError("uncommitted", sentence)
