"""The loop: read a verified range, fold it, write it and move the cursor in one transaction (design section 4).

A head below the cursor whose chain still agrees with ours is a sick source: the loop holds. Another hash at a height
that we hold is a reorg: the new branch is fetched and verified before the old one is undone.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from indexer.chain import Header, Log
from indexer.errors import (
    BadAnswerError,
    BehindError,
    ForkError,
    RangeTooLargeError,
    ReorgTooDeepError,
    RetryableError,
    WrongChainError,
)
from indexer.rpc import Rpc
from indexer.source import BlockRange, Source
from indexer.store.reader import Cursor, hashes
from indexer.store.writer import Writer

Progress = Callable[[int, int, int], None]
"""Called after every step with the indexed block, the chain's head, and the logs read in this run."""
OnRetry = Callable[[RetryableError, float], None]
"""Called before a pause with its cause and its length in seconds."""
Outcome = Literal["advanced", "replaced", "current", "held"]

_MANY_LOGS = 4000
_FEW_LOGS = 1000


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """Limits of the loop. Times in seconds, ranges in blocks."""

    first_range: int = 250
    max_range: int = 2000
    poll_seconds: float = 0.2
    thorough: bool = False
    """Read the receipts of every block that may hold an event: slower, and no log can be left out."""
    attempts: int = 6
    """How many failures in a row `run_once` bears; `follow` bears any number."""
    first_pause: float = 0.1
    longest_pause: float = 5.0


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Where a run ended. `held`: the node's head is below ours, and agrees with it."""

    block: int | None
    block_hash: str | None
    head: int
    blocks: int
    logs: int
    reorgs: int
    held: bool


DEFAULTS = SyncOptions()


def run_once(
    writer: Writer,
    rpc: Rpc,
    *,
    options: SyncOptions = DEFAULTS,
    progress: Progress | None = None,
    on_retry: OnRetry | None = None,
    stop: threading.Event | None = None,
) -> SyncResult:
    """Catch up with the chain's head and return.

    Raises a UserError whose message names the remedy, or the last RetryableError after `options.attempts` failures
    in a row.
    """
    loop = _Loop(writer, rpc, options, progress, on_retry, stop or threading.Event())
    loop.run(lasting=False)
    return loop.result()


def follow(
    writer: Writer,
    rpc: Rpc,
    *,
    stop: threading.Event,
    options: SyncOptions = DEFAULTS,
    progress: Progress | None = None,
    on_retry: OnRetry | None = None,
) -> SyncResult:
    """Follow the chain until `stop` is set, asking every `options.poll_seconds`; raises only UserErrors."""
    loop = _Loop(writer, rpc, options, progress, on_retry, stop)
    loop.run(lasting=True)
    return loop.result()


class _Loop:
    def __init__(
        self,
        writer: Writer,
        rpc: Rpc,
        options: SyncOptions,
        progress: Progress | None,
        on_retry: OnRetry | None,
        stop: threading.Event,
    ) -> None:
        self._writer = writer
        self._source = Source(rpc, writer.deployment, thorough=options.thorough)
        self._options = options
        self._progress = progress
        self._on_retry = on_retry
        self._stop = stop
        self._first = writer.deployment.first_block
        self._size = min(options.first_range, options.max_range)
        self._identified = False
        self._head = 0
        self._blocks = self._logs = self._reorgs = 0
        self._held = False

    def result(self) -> SyncResult:
        cursor = self._writer.cursor()
        return SyncResult(
            block=cursor.number if cursor else None,
            block_hash=cursor.hash if cursor else None,
            head=self._head,
            blocks=self._blocks,
            logs=self._logs,
            reorgs=self._reorgs,
            held=self._held,
        )

    def run(self, *, lasting: bool) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                outcome = self._step()
            except RetryableError as error:
                failures += 1
                if not lasting and failures >= self._options.attempts:
                    raise
                self._pause(error, failures)
                continue
            failures = 0
            self._held = outcome == "held"
            if outcome in {"current", "held"}:
                if not lasting:
                    return
                self._stop.wait(self._options.poll_seconds)

    def _pause(self, error: RetryableError, failures: int) -> None:
        self._identified = False  # whatever answers next may be another node
        if isinstance(error, BadAnswerError):
            self._size = max(1, self._size // 2)  # an error without known words may mean the range, as a last resort
        seconds = min(self._options.longest_pause, self._options.first_pause * 2 ** (min(failures, 30) - 1))
        if self._on_retry:
            self._on_retry(error, seconds)
        self._stop.wait(seconds)

    def _step(self) -> Outcome:
        if not self._identified:
            self._source.check_identity()
            self._identified = True
        head = self._source.head()
        self._head = head.number
        cursor = self._writer.cursor()
        if cursor is None:
            outcome = self._begin(head)
        elif head.number < cursor.number:
            outcome = self._lower_head(head, cursor)
        else:
            outcome = self._higher_head(head, cursor)
        self._report()
        return outcome

    def _report(self) -> None:
        cursor = self._writer.cursor()
        if self._progress and cursor:
            self._progress(cursor.number, self._head, self._logs)

    def _begin(self, head: Header) -> Outcome:
        if head.number < self._first:
            raise BehindError(f"The node's head is {head.number}, below the first block {self._first}; waiting.")
        fetched = self._fetch(self._first, head.number)
        self._writer.append(fetched.headers, fetched.logs, self._finalized(fetched, None))
        self._count(fetched)
        return "advanced"

    def _lower_head(self, head: Header, cursor: Cursor) -> Outcome:
        if head.number < self._first or self._ours(head.number) == head.hash:
            return "held"
        return self._replace(head, cursor)

    def _higher_head(self, head: Header, cursor: Cursor) -> Outcome:
        there = head if head.number == cursor.number else self._source.header(cursor.number)
        if there.hash != cursor.hash:
            return self._replace(head, cursor)
        if head.number == cursor.number:
            return "current"
        fetched = self._fetch(cursor.number + 1, head.number)
        _check_parent(fetched, cursor.hash)
        self._writer.append(fetched.headers, fetched.logs, self._finalized(fetched, cursor))
        self._count(fetched)
        return "advanced"

    # --- ranges

    def _fetch(self, first: int, head: int) -> BlockRange:
        """Fetch from `first` as far as the node allows, at most to `head`."""
        last = min(head, first + self._size - 1)
        while True:
            try:
                fetched = self._source.fetch(first, last)
            except RangeTooLargeError:
                if first == last:
                    raise
                last = first + (last - first) // 2
                self._size = last - first + 1
                continue
            self._adapt(len(fetched.logs))
            return fetched

    def _adapt(self, logs: int) -> None:
        if logs > _MANY_LOGS:
            self._size = max(1, self._size // 2)
        elif logs < _FEW_LOGS:
            self._size = min(self._options.max_range, self._size * 2)

    def _count(self, fetched: BlockRange) -> None:
        self._blocks += len(fetched.headers)
        self._logs += len(fetched.logs)

    def _ours(self, number: int) -> str | None:
        with self._writer.store.read() as connection:
            return hashes(connection, number, number).get(number)

    def _finalized(self, fetched: BlockRange, cursor: Cursor | None) -> int | None:
        """Give the highest block of ours, the fetched ones included, that the node calls final."""
        known = cursor.finalized if cursor else None
        final = self._source.finalized()
        first, last = fetched.headers[0].number, fetched.headers[-1].number
        if final is None or final.number > self._head or final.number < self._first:
            return known
        if final.number < first:
            held = self._ours(final.number)
        else:
            held = fetched.headers[final.number - first].hash if final.number <= last else final.hash
        if held != final.hash:
            raise ForkError(f"The node's final block {final.number} is not ours; asking again.")
        return max(min(final.number, last), known or 0)

    # --- reorgs

    def _replace(self, head: Header, cursor: Cursor) -> Outcome:
        self._source.check_identity()  # a restarted chain looks like a reorg
        ancestor = self._ancestor(min(head.number, cursor.number))
        if cursor.finalized is not None and ancestor < cursor.finalized:
            raise ReorgTooDeepError(
                f"The chain was replaced from block {ancestor + 1} on, though block {cursor.finalized} had been "
                "final. Compare COUNTERFOIL_RPC_URL with another node; if the new chain is right, move the index away "
                "and run `counterfoil index run` again."
            )
        if ancestor >= head.number:
            raise ForkError("The chain moved while its new branch was read; asking again.")
        branch = self._branch(ancestor, head.number, cursor.number)
        self._writer.replace_from(ancestor, branch.headers, branch.logs, self._finalized(branch, cursor))
        self._count(branch)
        self._reorgs += 1
        return "replaced"

    def _ancestor(self, start: int) -> int:
        """Find the highest block at or below `start` that we and the node share."""
        last, size = start, 1
        while last >= self._first:
            first = max(self._first, last - size + 1)
            theirs = self._source.headers(first, last)
            with self._writer.store.read() as connection:
                ours = hashes(connection, first, last)
            for header in reversed(theirs):
                if ours.get(header.number) == header.hash:
                    return header.number
            last, size = first - 1, min(size * 2, 256)
        raise WrongChainError(
            "The node shares no block with the index. If it is a development chain that was restarted, move the old "
            "index away and deploy again with `ape run deploy` or `make demo`; otherwise correct COUNTERFOIL_RPC_URL."
        )

    def _branch(self, ancestor: int, head: int, cursor: int) -> BlockRange:
        """Fetch the new branch up to where we were, or to its end, before anything is undone."""
        headers: tuple[Header, ...] = ()
        logs: list[Log] = []
        parent = self._ours(ancestor)
        while not headers or headers[-1].number < min(head, cursor):
            piece = self._fetch(headers[-1].number + 1 if headers else ancestor + 1, head)
            _check_parent(piece, parent)
            headers += piece.headers
            logs += piece.logs
            parent = headers[-1].hash
        return BlockRange(headers, tuple(logs))


def _check_parent(fetched: BlockRange, parent: str | None) -> None:
    if fetched.headers[0].parent_hash != parent:
        raise ForkError(f"Block {fetched.headers[0].number} does not follow ours: the chain moved; asking again.")
