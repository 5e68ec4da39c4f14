"""The node's look at the chain, every few seconds: openings, settlements, and whether anything is wrong."""

import threading
import time
from dataclasses import dataclass
from typing import Any, Final

import structlog

from counterfoil.chain.connection import Block
from counterfoil.chain.contracts import SessionStatus
from counterfoil.node.book import Known, VoucherBook
from counterfoil.node.metrics import Metrics
from counterfoil.node.reading import Reader
from counterfoil.node.settlement import Settler
from indexer.errors import IndexerError
from indexer.settings import Settings

SHOWN_STUCK: Final = 20
_RANGES: Final = 20
"""How many ranges of blocks one look searches at the most: what else it has to do must not wait for old blocks."""
_log = structlog.get_logger()


class Openings:
    """Finds the sessions that were opened with a node, also those without a call: they hold its capacity."""

    def __init__(self, node_id: int, operator: str, reader: Reader, book: VoucherBook, max_range: int) -> None:
        self._node_id = node_id
        self._operator = operator
        self._reader = reader
        self._book = book
        self._max_range = max_range
        self._range = max_range
        self._seen = ""

    def look(self, head: Block) -> None:
        """Enter new openings up to this block in the book. Blocks that are not final are searched at every head."""
        if head.hash == self._seen:
            return
        final = self._reader.final(head).number
        scanned = self._book.scanned()
        start = at = self._reader.first_block() if scanned is None else scanned + 1
        for _ in range(_RANGES):
            if at > head.number:
                self._seen = head.hash
                break
            last = min(at + self._range - 1, head.number)
            self._search(at, last, head)
            at = last + 1
        if min(at - 1, final) >= start:
            self._book.set_scanned(min(at - 1, final))

    def _search(self, first: int, last: int, head: Block) -> None:
        try:
            found = list(self._reader.openings(first, last))
        except IndexerError:
            self._range = max(1, self._range // 2)  # perhaps it was too much at once
            raise
        self._range = min(self._max_range, self._range * 2)
        for opening in found:
            is_ours = (opening.node_id, opening.operator) == (self._node_id, self._operator)
            if is_ours and self._book.record(opening.session_id) is None:
                self._enter(opening.session_id, head)

    def _enter(self, session_id: str, head: Block) -> None:
        state = self._reader.session(session_id, head)
        if state.status in (SessionStatus.OPEN, SessionStatus.CLOSING):
            self._book.note(Known(session_id, state.signer, state.price, head.number, head.timestamp))


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
        self._openings = Openings(node_id, operator, reader, book, settings.max_range_blocks)
        self._seconds = settings.node_watch_seconds
        self._patience = settings.node_watch_seconds + 2 * settings.request_seconds
        self._wake = threading.Event()
        self._standing = Standing("the chain was not asked yet", None)
        self._looked_at = time.monotonic()
        self._checked = ""

    def wake(self) -> None:
        """Look now."""
        self._wake.set()

    def look(self) -> None:
        """Look once. Raises IndexerError."""
        head = self._reader.head()
        self._metrics.looked(head)
        if head.hash != self._checked:
            self._reader.check_operator(self._node_id, self._operator)
            self._checked = head.hash
        self._openings.look(head)
        self._settler.look(head)
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
