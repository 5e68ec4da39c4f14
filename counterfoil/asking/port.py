"""What can be asked, whoever answers."""

from dataclasses import dataclass
from typing import Final, Protocol

from counterfoil import answers
from counterfoil.audit.model import By
from counterfoil.decision import NOBODY
from indexer.errors import QuestionError
from indexer.query import At

_NEXT_STEP: Final = {
    "service": "see `counterfoil services`",
    "node": "see `counterfoil nodes`",
    "session": "see `counterfoil sessions`, or bring the index up to date with `counterfoil index run`",
}


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows of a list: at most `limit` beyond `after`, as of the block `at` (None: the newest one)."""

    after: int = 0
    limit: int = 100
    at: At = None


@dataclass(frozen=True, slots=True)
class SessionsOf:
    """Which sessions: all, or those of a client, a node, a service, or in a status, such as `open`."""

    client: str | None = None
    node_id: int | None = None
    service_id: int | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """Whose draw, with which soft cap in base units a call; `nonce` None is the client's next one."""

    client: str = NOBODY
    cap: int | None = None
    nonce: int | None = None


class Answers(Protocol):
    """Answers questions, each as of a block. Raises IndexerError, ReceiptError and LotteryError with a sentence."""

    def services(self, category: str | None, *, routable: bool, rows: Rows) -> answers.ServicesAnswer:
        """List services by id."""

    def best(self, task: str, need: str, *, routable: bool, rows: Rows) -> answers.BestAnswer:
        """Rank services for a task and a need; `rows.after` is a place."""

    def service(self, service_id: int, at: At) -> answers.ServiceAnswer:
        """Give one service."""

    def experience(self, service_id: int, at: At) -> answers.ExperienceAnswer:
        """Give what is known of a service."""

    def nodes(self, operator: str | None, rows: Rows) -> answers.NodesAnswer:
        """List nodes by id: all, or those of an operator's address."""

    def node(self, node_id: int, at: At) -> answers.NodeAnswer:
        """Give one node."""

    def sessions(self, of: SessionsOf, rows: Rows) -> answers.SessionsAnswer:
        """List sessions by number."""

    def session(self, which: str, at: At) -> answers.SessionAnswer:
        """Give one session by its number, its id, or an unambiguous start of it."""

    def route(self, category: str, draw: Draw, at: At) -> answers.RouteAnswer:
        """Say what the lottery would choose."""

    def receipt(self, digest: str) -> bytes:
        """Give the canonical bytes of a receipt, checked against its digest of 0x and 64 lower-case digits."""

    def status(self) -> answers.IndexAnswer:
        """Say what the index is of and how far it is."""

    def audit(self, session: str, by: By | None) -> answers.Audit:
        """Replay the decision of a session; `by` None is by all that whoever answers can replay by."""


def not_there(kind: str, sentence: str) -> QuestionError:
    """The error for a service, node or session that does not exist, with the next step after the sentence."""
    return QuestionError(f"{sentence}: {_NEXT_STEP[kind]}.")
