"""Answers from an index, a chain and receipts of one's own, as the settings name them."""

from dataclasses import asdict, dataclass
from typing import TypeVar

from counterfoil import answers, documents, market
from counterfoil.asking.port import Draw, Rows, SessionsOf, not_there
from counterfoil.audit.model import By
from counterfoil.decision import decide, next_draw
from counterfoil.directory import Directory, LiveListings, StoredListings
from counterfoil.directory.listings import Listed
from counterfoil.reading import open_index
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import canonical
from indexer import query, service
from indexer.query import Answer, AsOf, At
from indexer.settings import Settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnIndex:
    """Opens what a question needs, and nothing else. See `Answers`."""

    settings: Settings

    def services(self, category: str | None, *, routable: bool, rows: Rows) -> answers.ServicesAnswer:
        """List services by id."""
        with open_index(self.settings) as store:
            listings = StoredListings(store, rows.at)
            found = listings.page(category, routable=routable, after=rows.after, limit=rows.limit)
        return documents.services_answer(found)

    def best(self, task: str, need: str, *, routable: bool, rows: Rows) -> answers.BestAnswer:
        """Rank services for a task and a need."""
        with open_index(self.settings) as store:
            listings = LiveListings(Directory(store), rows.at)
            found = listings.best(task, need, routable=routable, after=rows.after, limit=rows.limit)
        return documents.best_answer(found, rows.after)

    def service(self, service_id: int, at: At) -> answers.ServiceAnswer:
        """Give one service."""
        return documents.service_answer(*self._listed(service_id, at))

    def experience(self, service_id: int, at: At) -> answers.ExperienceAnswer:
        """Give what is known of a service."""
        return documents.experience_answer(*self._listed(service_id, at))

    def nodes(self, operator: str | None, rows: Rows) -> answers.NodesAnswer:
        """List nodes by id."""
        with open_index(self.settings) as store:
            found = query.nodes(store, operator=operator, after=rows.after, limit=rows.limit, at=rows.at)
        return documents.nodes_answer(found)

    def node(self, node_id: int, at: At) -> answers.NodeAnswer:
        """Give one node."""
        with open_index(self.settings) as store:
            found = query.node(store, node_id, at)
        return documents.node_answer(*_existing("node", node_id, found))

    def sessions(self, of: SessionsOf, rows: Rows) -> answers.SessionsAnswer:
        """List sessions by number."""
        named = asdict(of) | asdict(rows)
        if of.status is not None:
            named["status"] = documents.SESSION_STATUS.index(of.status)
        with open_index(self.settings) as store:
            return documents.sessions_answer(query.sessions(store, **named))

    def session(self, which: str, at: At) -> answers.SessionAnswer:
        """Give one session."""
        with open_index(self.settings) as store:
            found = query.session(store, which, at)
        return documents.session_answer(*_existing("session", which[:80], found))

    def route(self, category: str, draw: Draw, at: At) -> answers.RouteAnswer:
        """Say what the lottery would choose."""
        with open_index(self.settings) as store:
            snapshot = market.snapshot(store, category, at)
            block = snapshot.as_of.block
            nonce = next_draw(store, draw.client, block) if draw.nonce is None else draw.nonce
            addresses = query.status(store).value.addresses
            receipt = decide(snapshot, addresses, draw.client, nonce, draw.cap)
        return documents.route_answer(snapshot.as_of, receipt)

    def receipt(self, digest: str) -> bytes:
        """Give the canonical bytes of a receipt in the folder of receipts."""
        return canonical(ReceiptStore(self.settings.home / "receipts").load(digest))

    def status(self) -> answers.IndexAnswer:
        """Say what the index is of and how far it is."""
        found = service.index_status(self.settings)
        told: answers.IndexAnswer = {"database": found.database, "head": found.head, "as_of": None, "status": None}
        if found.as_of is not None and found.status is not None:
            return {**told, **documents.status_answer(Answer(found.as_of, found.status))}
        return told

    def audit(self, session: str, by: By | None) -> answers.Audit:
        """Replay the decision of a session, by chain state, by the index, or by both."""
        # Imported here, so that reading an index does not pay for the chain's library.
        from counterfoil.audit.opening import open_auditor
        from counterfoil.audit.report import session_document

        with open_auditor(self.settings, by or "both") as auditor:
            return session_document(auditor.session(session))

    def _listed(self, service_id: int, at: At) -> tuple[AsOf, Listed]:
        with open_index(self.settings) as store:
            found = StoredListings(store, at).one(service_id)
        return _existing("service", service_id, found)


def _existing(kind: str, name: int | str, answer: Answer[T | None]) -> tuple[AsOf, T]:
    if answer.value is None:
        raise not_there(kind, f"There is no {kind} {name} as of block {answer.as_of.block}")
    return answer.as_of, answer.value
