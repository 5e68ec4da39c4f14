"""What the tools do: each asks what the API and the terminal ask, and answers the same."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from counterfoil import answers, documents
from counterfoil.agent.calling import make, one_step
from counterfoil.agent.desk import open_desk
from counterfoil.agent.notes import NoteBook, ToolNote
from counterfoil.agent.record import RunRecord, record_of
from counterfoil.audit.model import By
from counterfoil.audit.opening import open_auditor
from counterfoil.audit.report import session_document
from counterfoil.chain.keys import load_account, load_relayer
from counterfoil.decision import decide_next
from counterfoil.directory import Directory, LiveListings
from counterfoil.directory.listings import Listed
from counterfoil.market import LiveMarket
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts.canonical import document
from indexer import query
from indexer.errors import QuestionError
from indexer.query import Answer, AsOf, At, Store, named_block, open_store
from indexer.rows import Session
from indexer.settings import Settings


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Answers the tools' questions from one index. Raises what the API turns into problems."""

    settings: Settings
    store: Store
    market: LiveMarket
    directory: Directory
    receipts: ReceiptStore
    notes: NoteBook

    def best(self, task: str, need: str, limit: int, at: str | None) -> answers.BestAnswer:
        """Rank listings for a task and a need."""
        if not task and not need:
            raise QuestionError("Name a task, a need, or both.")
        found = self._listings(at).best(task, need, routable=True, after=0, limit=limit)
        return documents.best_answer(found, 0)

    def services(self, category: str | None, after: int, limit: int, at: str | None) -> answers.ServicesAnswer:
        """List services by id."""
        found = self._listings(at).page(category, routable=False, after=after, limit=limit)
        return documents.services_answer(found)

    def experience(self, service_id: int, at: str | None) -> answers.ExperienceAnswer:
        """Give what is known of a service."""
        answer: Answer[Listed | None] = self._listings(at).one(service_id)
        if answer.value is None:
            raise QuestionError(f"There is no service {service_id} as of block {answer.as_of.block}.")
        return documents.experience_answer(answer.as_of, answer.value)

    def route(
        self, category: str, client: str, cap: int | None, nonce: int | None, at: str | None
    ) -> answers.RouteAnswer:
        """Say what the lottery would choose."""
        return documents.route_answer(*decide_next(self.market, category, _block(at), client, nonce, cap))

    def explain(self, session: str) -> answers.Explanation:
        """Give a session's receipt, with every reason."""
        as_of, row = self._session(session)
        receipt = self.receipts.load(row.decision)
        return {
            "as_of": documents.as_of_document(as_of),
            "session": documents.session_document(row),
            "reason": receipt.reason,
            "decision": document(receipt),
        }

    def audit(self, session: str, by: By) -> answers.Audit:
        """Replay a decision."""
        with open_auditor(self.settings, by) as auditor:
            return session_document(auditor.session(session))

    def call(self, budget: int, **step: Any) -> answers.CallAnswer:  # noqa: ANN401
        """Call a service by its id or for a task, within the budget and the caps of the settings. It pays."""
        workflow = one_step(budget, **step)
        with open_desk(self.settings, load_account(os.environ), load_relayer(os.environ)) as desk:
            record = record_of(desk.journal, make(desk, workflow))
        return _paid(record)

    def note_tool(self, session: str, note: ToolNote) -> answers.NoteKept:
        """Keep a note for the record of a session of the index; the note itself need not name it."""
        note = note.model_copy(update={"session_id": self._session(session)[1].session_id})
        path = self.notes.keep(note)
        return {
            "session_id": note.session_id,
            "tool": note.tool,
            "need": note.need,
            "task": note.task,
            "note": note.note,
            "kept_in": path.name,
        }

    def _listings(self, at: str | None) -> LiveListings:
        return LiveListings(self.directory, _block(at))

    def _session(self, session: str) -> tuple[AsOf, Session]:
        answer = query.session(self.store, session)
        if answer.value is None:
            raise QuestionError(f"There is no session {session[:80]} as of block {answer.as_of.block}.")
        return answer.as_of, answer.value


def _paid(record: RunRecord) -> answers.CallAnswer:
    (step,) = record["steps"]
    sessions = [
        answers.PaidSession(
            session_id=one["session_id"],
            service_id=one["service_id"],
            receipt=one["receipt"],
            paid=one["paid"],
            score=one["score"],
            failure=one["failure"],
        )
        for one in step["sessions"]
    ]
    return {
        "run_id": record["run_id"],
        "status": record["status"],
        "reason": step["reason"],
        "output": step["output"],
        "paid": record["paid"],
        "sessions": sessions,
    }


def _block(at: str | None) -> At:
    return None if at is None else named_block(at)


@contextmanager
def open_toolbox(settings: Settings) -> Iterator[Toolbox]:
    """Open the index that the settings name, and lay out the tools. Raises StoreError."""
    with open_store(settings.database_url()) as store:
        directory = Directory(store)
        directory.warm()
        receipts, notes = ReceiptStore(settings.home / "receipts"), NoteBook(settings.home / "notes")
        yield Toolbox(settings, store, LiveMarket(store), directory, receipts, notes)
