"""Audits over HTTP: by the rows and logs of the index that the server has, and by the receipts that it keeps."""

from dataclasses import replace

from counterfoil import answers, documents
from counterfoil.api.problems import NotFoundError, without_places
from counterfoil.audit.model import SessionAudit
from counterfoil.audit.opening import auditor_by_index
from counterfoil.audit.report import session_document
from counterfoil.receipt_store import ReceiptStore
from indexer import query
from indexer.errors import ForkError, QuestionError, UnknownBlockError
from indexer.query import AsOf, Store
from indexer.store.deadline import seconds_left


def audited(store: Store, receipts: ReceiptStore, which: str) -> answers.AuditAnswer:
    """Audit one session, named by its number, its id or the start of its id.

    Raises NotFoundError where the index holds no such session, ForkError where the chain was replaced meanwhile, and
    TooSlowError where the time was over: what could not be read in time is no finding.
    """
    as_of = query.as_of(store)
    audit = _audit(store, receipts, which)
    seconds_left()
    _need(store, as_of)
    return {"as_of": documents.as_of_document(as_of), "source": "index", "audit": session_document(audit)}


def _audit(store: Store, receipts: ReceiptStore, which: str) -> SessionAudit:
    try:
        audit = auditor_by_index(store, receipts).session(which)
    except QuestionError:
        answer = query.session(store, which)
        if answer.value is None:
            raise NotFoundError(f"there is no session {which} as of block {answer.as_of.block}") from None
        raise
    checks = (replace(check, sentence=without_places(check.sentence, store, receipts)) for check in audit.checks)
    return replace(audit, checks=tuple(checks))


def _need(store: Store, as_of: AsOf) -> None:
    # The audit reads several times: were its block replaced in between, it must not be put together of two forks.
    try:
        query.as_of(store, as_of.hash)
    except UnknownBlockError:
        raise ForkError(f"Block {as_of.block} was replaced while it was read: ask again.") from None
