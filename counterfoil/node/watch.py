"""The node's look at the chain, every few seconds: openings, settlements, and whether anything is wrong."""

import threading
import time
from dataclasses import dataclass
from typing import Any, Final

import structlog

from counterfoil.chain.connection import Block
from counterfoil.node.book import VoucherBook
from counterfoil.node.following import Follower
from counterfoil.node.metrics import Metrics
from counterfoil.node.reading import Reader
from counterfoil.node.settlement import Settler
from indexer.errors import IndexerError
from indexer.settings import Settings

SHOWN_STUCK: Final = 20
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Standing:
    """How the last look went: `why_not` says what keeps the node from being ready."""

    why_not: str | None
    head: Block | None


class Watch:
    """Looks every `node_watch_seconds`, or at once when it is told to."""

    def __init__(
        self, node_id: int, operator: str, reader: Reader, book: VoucherBook, settler: Settler, metrics: Metrics,
        settings: Settings,
    ) -> None:  # fmt: skip
        self._node_id = node_id
        self._operator = operator
        self._reader = reader
        self._book = book
        self._settler = settler
        self._metrics = metrics
        self._follower = Follower(node_id, operator, reader, book, settings.max_range_blocks)
        self._seconds = settings.node_watch_seconds
        self._patience = settings.node_watch_seconds + 2 * settings.request_seconds
        self._wake = threading.Event()
        self._standing = Standing("the chain was not asked yet", None)
        self._looked_at = time.monotonic()
        self._followed = ""

    def wake(self) -> None:
        """Look now."""
        self._wake.set()

    def look(self) -> None:
        """Look once. Raises IndexerError."""
        head = self._reader.head()
        self._metrics.looked(head)
        try:
            if head.hash != self._followed:
                self._reader.check_operator(self._node_id, self._operator)
                final = self._reader.final(head)
                self._settler.follow(self._follower.look(head, final), head, final)
                self._followed = head.hash if self._follower.is_at(head) else ""
            self._settler.settle_due(head)
        except IndexerError:
            self._follower.forget()
            self._followed = ""
            raise
        self._stand(None, head)

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop. A fault is logged once, and tried again."""
        while not stop.is_set():
            self._wake.clear()
            try:
                self.look()
            except IndexerError as error:
                self._fault(error)
            self._wake.wait(self._seconds)

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether chain, book and registration are as calls need them, why not, and what is stuck."""
        reasons = [reason for reason in (self._why_not(), self._book_fault()) if reason]
        stuck = self._settler.stuck()
        head = self._standing.head
        return not reasons, {
            "ready": not reasons,
            "reasons": reasons,
            "head": head.number if head else None,
            "stuck": [{"session_id": one, "reason": stuck[one]} for one in sorted(stuck)[:SHOWN_STUCK]],
            "stuck_sessions": len(stuck),
        }

    def _why_not(self) -> str | None:
        if time.monotonic() - self._looked_at > self._patience:
            return self._standing.why_not or "the chain was not looked at for too long"
        return self._standing.why_not

    def _book_fault(self) -> str | None:
        try:
            self._book.scanned()
        except IndexerError as error:
            return str(error)
        return None

    def _stand(self, why_not: str | None, head: Block | None) -> None:
        self._standing = Standing(why_not, head)
        self._looked_at = time.monotonic()

    def _fault(self, error: IndexerError) -> None:
        if str(error) != self._standing.why_not:
            _log.warning("trouble", error=type(error).__name__, message=str(error))
        self._stand(str(error), self._standing.head)
