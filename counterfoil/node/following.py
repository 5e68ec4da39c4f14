"""What happened to sessions since the last look: which were opened with this node, and which may have changed."""

import time
from typing import Final

from counterfoil.chain.connection import Block
from counterfoil.chain.contracts import SessionStatus
from counterfoil.node.book import Known, VoucherBook
from counterfoil.node.reading import Event, Reader
from indexer.errors import IndexerError

MAX_RANGES: Final = 20
"""How many ranges of blocks one look searches at the most: what else there is to do must not wait for old blocks."""
TRUST_SECONDS: Final = 60.0
"""How long logs alone say which sessions changed: then all are read again, in case the RPC left a log out."""


class Follower:
    """Follows the sessions of one node by the logs of SessionManager.

    Openings are searched from the last final block that was searched on, which the book keeps; so a session that a
    reorg moves to another block is found there.
    """

    def __init__(self, node_id: int, operator: str, reader: Reader, book: VoucherBook, max_range: int) -> None:
        self._node_id = node_id
        self._operator = operator
        self._reader = reader
        self._book = book
        self._max_range = max_range
        self._range = max_range
        self._followed: Block | None = None
        self._read_all_at = float("-inf")

    def look(self, head: Block, final: Block) -> set[str] | None:
        """Enter new openings up to `head` in the book, and give the ids of sessions that may have changed since the
        last look; None where any may have. Raises ChainError and BookError.
        """
        continued = self._followed is not None and self._is_on_chain(self._followed, head)
        first = self._next(continued)
        changed, searched = self._search(first, head)
        if min(searched, final.number) >= first:
            self._book.set_scanned(min(searched, final.number))
        self._followed = head if searched >= head.number else None
        if continued and time.monotonic() - self._read_all_at < TRUST_SECONDS:
            return changed
        self._read_all_at = time.monotonic()
        return None

    def is_at(self, head: Block) -> bool:
        """Whether everything up to this block was searched."""
        return self._followed == head

    def forget(self) -> None:
        """What the last look gave was not used up: the next one gives all."""
        self._followed = None

    def _is_on_chain(self, block: Block, head: Block) -> bool:
        return block.number <= head.number and self._reader.is_on_chain(block.number, block.hash)

    def _next(self, continued: bool) -> int:
        if continued and self._followed:
            return self._followed.number + 1
        scanned = self._book.scanned()
        return self._reader.first_block() if scanned is None else scanned + 1

    def _search(self, first: int, head: Block) -> tuple[set[str], int]:
        changed: set[str] = set()
        for _ in range(MAX_RANGES):
            if first > head.number:
                break
            last = min(first + self._range - 1, head.number)
            for event in self._events(first, last):
                changed.add(event.session_id)
                self._enter(event, head)
            first = last + 1
        return changed, first - 1

    def _events(self, first: int, last: int) -> list[Event]:
        try:
            found = self._reader.events(first, last)
        except IndexerError:
            self._range = max(1, self._range // 2)  # perhaps it was too much at once
            raise
        self._range = min(self._max_range, self._range * 2)
        return found

    def _enter(self, event: Event, head: Block) -> None:
        is_ours = (event.opened_with, event.operator) == (self._node_id, self._operator)
        if not is_ours or self._book.record(event.session_id):
            return
        state = self._reader.session(event.session_id, head)
        if state.status in (SessionStatus.OPEN, SessionStatus.CLOSING):
            self._book.note(Known(event.session_id, state.signer, state.price, head.number, head.timestamp))
