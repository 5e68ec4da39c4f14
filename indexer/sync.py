"""The loop: read a verified range, fold it, write it and move the cursor in one transaction (design section 4).

A head below the cursor whose chain still agrees with ours is a sick source: the loop holds, and asks another node
where there is one. The rows above that head stay; they are not final. Another hash at a height that we hold is a
reorg, also where the new branch is shorter: it is fetched and verified before the old one is undone.

While ranges are written, the next ones are read in the background (indexer/ahead.py), in a backfill by a process of
its own (indexer/reading.py). They count only where they follow what was written.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from indexer.ahead import Ahead
from indexer.chain import Header
from indexer.deployment import Deployment
from indexer.errors import (
    BehindError,
    ForkError,
    ReorgTooDeepError,
    RetryableError,
    StoreUnavailableError,
    WrongChainError,
)
from indexer.notices import (
    Notice,
    Observer,
    Outcome,
    ProviderChanged,
    Reading,
    Replaced,
    Retried,
    Stepped,
    Weakened,
    silent,
)
from indexer.providers import Provider, Providers, pause_after
from indexer.ranges import RangeSize
from indexer.reading import Reader, Task
from indexer.rpc import HttpRpc, Rpc
from indexer.source import BlockRange, Finality, Source, Verify
from indexer.store.reader import Cursor, hashes
from indexer.store.writer import Writer
from indexer.subscription import Wait, waiting

_MAX_NOTICES = 100


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """Limits of the loop. Times in seconds, ranges in blocks."""

    first_range: int = 25
    max_range: int = 2000
    poll_seconds: float = 0.2
    verify: Verify = "bloom"
    """`full` proves the logs of every block by its receipts: slower, and no log can be left out."""
    confirmations: int = 0
    """How many blocks the index stays behind the head. Raising it undoes nothing that is indexed already."""
    finality: Finality = "finalized"
    raw_log_blocks: int = 0
    """How many blocks of raw logs below the final block are kept; 0 keeps all."""
    attempts: int = 6
    """How many failures in a row of each node `run_once` bears; `follow` bears any number."""
    first_pause: float = 0.1
    longest_pause: float = 5.0
    reader_blocks: int = 500
    """From how many blocks behind on another process reads while this one writes; 0 for never."""
    quiet_seconds: float = 60.0
    """After so long without a new block another node is asked, where there is one."""
    websocket_url: str = ""
    """Where `follow` hears of new heads, so that it asks sooner; empty for nowhere."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """Where a run ended, and what it took. `held`: the node's head is below ours, and agrees with it.

    `head` is the node's newest block. The figures of verification are of the blocks that were read again from their
    receipts: JSON-RPC calls, bytes of the answers, seconds. `notices` tell which nodes were set aside and why, and
    what could not be verified as asked.
    """

    block: int | None
    block_hash: str | None
    head: int
    blocks: int
    logs: int
    reorgs: int
    held: bool
    verified_blocks: int = 0
    verification_calls: int = 0
    verification_bytes: int = 0
    verification_seconds: float = 0
    notices: tuple[str, ...] = ()


DEFAULTS = SyncOptions()


def run_once(
    writer: Writer,
    rpc: Rpc | Sequence[Rpc],
    *,
    options: SyncOptions = DEFAULTS,
    observer: Observer = silent,
    stop: threading.Event | None = None,
) -> SyncResult:
    """Catch up with the chain's head and return. Several nodes are tried in turn (indexer/providers.py).

    Raises a UserError whose message names the remedy, or the last RetryableError after `options.attempts` failures
    in a row of each node.
    """
    loop = _Loop(writer, rpc, options, observer, stop or threading.Event())
    loop.run(lasting=False)
    return loop.result()


def follow(
    writer: Writer,
    rpc: Rpc | Sequence[Rpc],
    *,
    stop: threading.Event,
    options: SyncOptions = DEFAULTS,
    observer: Observer = silent,
) -> SyncResult:
    """Follow the chain until `stop` is set, asking every `options.poll_seconds`; raises only UserErrors."""
    loop = _Loop(writer, rpc, options, observer, stop)
    loop.run(lasting=True)
    return loop.result()


@dataclass(frozen=True, slots=True)
class _Round:
    """What one node said at the beginning of a round."""

    provider: Provider
    head: Header
    target: int
    """The block to reach."""
    final: Header | None


class _Loop:
    def __init__(
        self,
        writer: Writer,
        rpc: Rpc | Sequence[Rpc],
        options: SyncOptions,
        observer: Observer,
        stop: threading.Event,
    ) -> None:
        self._writer = writer
        self._options = options
        self._observer = observer
        self._stop = stop
        self._first = writer.deployment.first_block
        self._providers = Providers(
            self._open_providers(rpc if isinstance(rpc, Sequence) else [rpc], writer.deployment),
            pauses=(options.first_pause, options.longest_pause),
            tell=self._tell,
        )
        self._ahead = Ahead[BlockRange](self._is_over)
        self._over = False
        self._moved = time.monotonic()
        self._round: _Round | None = None
        self._head: Header | None = None
        self._tip: Header | None = None
        self._blocks = self._logs = self._reorgs = self._held = 0
        self._read_seconds = self._write_seconds = 0.0
        self._notices: list[str] = []
        self._prunable = True

    def _open_providers(self, rpcs: Sequence[Rpc], deployment: Deployment) -> list[Provider]:
        made = []
        for place, rpc in enumerate(rpcs):
            same = sum(other.where == rpc.where for other in rpcs[:place])
            name = f"{rpc.where} (number {same + 1})" if same else rpc.where
            source = Source(
                rpc, deployment, verify=self._options.verify, weakened=self._weakened(name), is_over=self._is_over
            )
            size = RangeSize(self._options.first_range, self._options.max_range)
            made.append(Provider(name, source, size, self._reader(rpc, deployment), self._options.reader_blocks))
        return made

    def _reader(self, rpc: Rpc, deployment: Deployment) -> Reader | None:
        if not self._options.reader_blocks or not isinstance(rpc, HttpRpc):
            return None
        return Reader(Task(rpc.url, rpc.seconds, rpc.max_bytes, deployment, self._options.verify), self._is_over)

    def _weakened(self, name: str) -> Callable[[str], None]:
        return lambda why: self._tell(Weakened(name, why))

    def _is_over(self) -> bool:
        return self._over or self._stop.is_set()

    def result(self) -> SyncResult:
        cursor = self._writer.cursor()
        costs = [provider.source.cost for provider in self._providers]
        return SyncResult(
            block=cursor.number if cursor else None,
            block_hash=cursor.hash if cursor else None,
            head=self._head.number if self._head else 0,
            blocks=self._blocks,
            logs=self._logs,
            reorgs=self._reorgs,
            held=self._held > 0,
            verified_blocks=sum(cost.blocks for cost in costs),
            verification_calls=sum(cost.calls for cost in costs),
            verification_bytes=sum(cost.bytes for cost in costs),
            verification_seconds=sum(cost.seconds for cost in costs),
            notices=tuple(self._notices),
        )

    def run(self, *, lasting: bool) -> None:
        with self._ahead, waiting(self._options.websocket_url if lasting else "", self._stop) as wait:
            try:
                self._run(wait, lasting=lasting)
            finally:
                self._over = True
                for provider in self._providers:
                    provider.close()

    def _run(self, wait: Wait, *, lasting: bool) -> None:
        failures = 0
        while not self._stop.is_set():
            provider, seconds = self._providers.pick()
            if seconds and self._stop.wait(seconds):
                return
            try:
                outcome = self._step(provider)
            except (RetryableError, WrongChainError, ReorgTooDeepError) as error:
                failures += 1
                seconds = self._recover(provider, error, failures)
                if not lasting and failures >= self._options.attempts * len(self._providers):
                    raise
                self._stop.wait(seconds)
                continue
            failures = 0
            self._held = self._held + 1 if outcome == "held" else 0
            self._providers.succeeded(provider)
            if outcome in {"current", "held"} and self._rest(provider, outcome, wait, lasting=lasting):
                return

    def _rest(self, provider: Provider, outcome: Outcome, wait: Wait, *, lasting: bool) -> bool:
        """Wait for the next poll; tells whether a run that does not last is over."""
        provider.stop()
        if outcome == "held" or time.monotonic() > self._moved + self._options.quiet_seconds:
            self._moved = time.monotonic()
            self._providers.move_on(provider)
        if not lasting:
            while not self._stop.is_set() and self._prune(moved=False):
                pass
            return self._held in {0, len(self._providers)}
        wait(self._options.poll_seconds)
        return False

    def _recover(
        self, provider: Provider, error: RetryableError | WrongChainError | ReorgTooDeepError, failures: int
    ) -> float:
        """Forget what was read ahead, and give the pause after a failure; the database's is no node's fault."""
        self._ahead.drop()
        provider.stop()
        if isinstance(error, StoreUnavailableError):
            seconds = pause_after(failures, self._options.first_pause, self._options.longest_pause)
        else:
            seconds = self._providers.failed(provider, error)
        if isinstance(error, RetryableError) and not self._stop.is_set():
            self._tell(Retried(error, seconds))
        return seconds

    # --- what is told

    def _tell(self, notice: Notice) -> None:
        match notice:
            case ProviderChanged(provider=name, set_aside=str(why)):
                self._keep(f"{name} was set aside: {why}")
            case Weakened(provider=name, why=why):
                self._keep(f"{name}: {why}")
        self._observer(notice)

    def _keep(self, sentence: str) -> None:
        if len(self._notices) < _MAX_NOTICES:
            self._notices.append(sentence)

    def _report(self, outcome: Outcome, blocks: int, logs: int) -> None:
        cursor = self._writer.cursor()
        if cursor is None or self._head is None:
            return
        timestamp = self._tip.timestamp if self._tip and self._tip.hash == cursor.hash else None
        seconds = self._read_seconds, self._write_seconds
        self._tell(Stepped(outcome, self._head, cursor, timestamp, blocks, logs, *seconds))

    @contextmanager
    def _reading(self, provider: Provider, first: int, target: int) -> Iterator[None]:
        self._tell(Reading(first, min(target, first + provider.size.blocks - 1)))
        started = time.monotonic()
        try:
            yield
        finally:
            self._read_seconds += time.monotonic() - started

    @contextmanager
    def _writing(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._write_seconds += time.monotonic() - started

    # --- steps

    def _step(self, provider: Provider) -> Outcome:
        blocks, logs = self._blocks, self._logs
        self._read_seconds = self._write_seconds = 0.0
        cursor = self._writer.cursor()
        now, fetched = self._round, self._read_ahead(provider, cursor)
        outcome = self._append(now, fetched, cursor) if now and fetched else self._look(provider, cursor)
        self._report(outcome, self._blocks - blocks, self._logs - logs)
        self._prune(moved=outcome in {"advanced", "replaced"})
        return outcome

    def _prune(self, *, moved: bool) -> bool:
        """Let old raw logs go where there may be some, in one bounded step; tells whether there may be more."""
        keep = self._options.raw_log_blocks
        self._prunable = bool(keep) and (moved or self._prunable) and self._writer.prune(keep) > 0
        return self._prunable

    def _read_ahead(self, provider: Provider, cursor: Cursor | None) -> BlockRange | None:
        """Give what this node has said in advance; what another one says, or fails at, is no longer asked for."""
        if not (self._ahead.pending and self._round and cursor):
            return None
        if self._round.provider is not provider:
            self._ahead.drop()
            return None
        with self._reading(provider, cursor.number + 1, self._round.target):
            pieces = self._ahead.take()
        return _joined(pieces) if pieces else None

    def _look(self, provider: Provider, cursor: Cursor | None) -> Outcome:
        """Begin a round: see where the node's chain is, and go on, hold, or change over."""
        provider.identify()
        head = self._newest(provider)
        target = head.number - self._options.confirmations
        if cursor is None:
            if target < self._first:
                raise BehindError(
                    f"The node's head is {head.number}; with {self._options.confirmations} confirmations the first "
                    f"block {self._first} is not there yet; waiting."
                )
            return self._advance(provider, head, target, None)
        if head.number < cursor.number:
            return self._lower_head(provider, head, cursor)
        if head.parent_hash != cursor.hash:
            there = head if head.number == cursor.number else provider.source.header(cursor.number)
            if there.hash != cursor.hash:
                return self._replace(provider, head, cursor)
            self._tip = there
        if target <= cursor.number:
            return "current"
        return self._advance(provider, head, target, cursor)

    def _newest(self, provider: Provider) -> Header:
        head = provider.source.head()
        if self._head is None or head.hash != self._head.hash:
            self._moved = time.monotonic()
        self._head = head
        return head

    def _lower_head(self, provider: Provider, head: Header, cursor: Cursor) -> Outcome:
        provider.identify(again=True)  # a restarted chain is lower, too
        if head.number < self._first or self._ours(head.number) == head.hash:
            return "held"
        return self._replace(provider, head, cursor)

    def _advance(self, provider: Provider, head: Header, target: int, cursor: Cursor | None) -> Outcome:
        now = _Round(provider, head, target, provider.source.final(self._options.finality, head))
        return self._append(now, self._fetch(now, cursor.number + 1 if cursor else self._first, target), cursor)

    def _fetch(self, now: _Round, first: int, target: int) -> BlockRange:
        with self._reading(now.provider, first, target):
            return now.provider.fetch(first, target)

    def _append(self, now: _Round, fetched: BlockRange, cursor: Cursor | None) -> Outcome:
        """Write a range, and have the next one of the round read meanwhile."""
        if cursor:
            _check_parent(fetched, cursor.hash)
        finalized = self._finalized(now, fetched, cursor)
        self._believe(now.provider, fetched)
        self._round = now
        if not self._ahead.pending and fetched.headers[-1].number < now.target:
            self._ahead.start(now.provider.fetch_all(fetched.headers[-1].number + 1, now.target), now.provider.stop)
        with self._writing():
            self._writer.append(fetched.headers, fetched.logs, finalized, now.target)
        self._count(fetched)
        return "advanced"

    def _believe(self, provider: Provider, fetched: BlockRange) -> None:
        if fetched.lie:
            self._providers.set_aside(provider, fetched.lie)

    def _count(self, fetched: BlockRange) -> None:
        self._blocks += len(fetched.headers)
        self._logs += len(fetched.logs)
        self._tip = fetched.headers[-1]

    def _ours(self, number: int) -> str | None:
        with self._writer.store.read() as connection:
            return hashes(connection, number, number).get(number)

    def _finalized(self, now: _Round, fetched: BlockRange, cursor: Cursor | None) -> int | None:
        """Give the highest block of ours, the fetched ones included, that the node calls final."""
        known = cursor.finalized if cursor else None
        final = now.final
        first, last = fetched.headers[0].number, fetched.headers[-1].number
        if final is None or final.number > now.head.number or final.number < self._first:
            return known
        if final.number < first:
            held = self._ours(final.number)
        else:
            held = fetched.headers[final.number - first].hash if final.number <= last else final.hash
        if held != final.hash:
            raise ForkError(f"The node's final block {final.number} is not ours; asking again.")
        return max(min(final.number, last), known or 0)

    # --- reorgs

    def _replace(self, provider: Provider, head: Header, cursor: Cursor) -> Outcome:
        provider.identify(again=True)  # a restarted chain looks like a reorg
        ancestor = self._ancestor(provider.source, min(head.number, cursor.number), cursor.finalized)
        if ancestor >= head.number:
            raise ForkError("The chain moved while its new branch was read; asking again.")
        least = min(head.number, cursor.number)
        target = max(least, head.number - self._options.confirmations)
        now = _Round(provider, head, target, provider.source.final(self._options.finality, head))
        branch = self._branch(now, ancestor, least)
        finalized = self._finalized(now, branch, cursor)
        with self._writing():
            self._writer.replace_from(ancestor, branch.headers, branch.logs, finalized, target)
        self._count(branch)
        self._reorgs += 1
        self._tell(Replaced(ancestor, cursor.number - ancestor))
        return "replaced"

    def _ancestor(self, source: Source, start: int, finalized: int | None) -> int:
        """Find the highest block at or below `start`, and not below the final one, that we and the node share."""
        lowest = max(self._first, finalized or 0)
        last, size = start, 1
        while last >= lowest:
            first = max(lowest, last - size + 1)
            theirs = source.headers(first, last)
            with self._writer.store.read() as connection:
                ours = hashes(connection, first, last)
            for header in reversed(theirs):
                if ours.get(header.number) == header.hash:
                    return header.number
            last, size = first - 1, min(size * 2, 256)
        if finalized is not None:
            raise ReorgTooDeepError(
                f"The chain was replaced from block {finalized} or below on, though that block had been final. Compare "
                "COUNTERFOIL_RPC_URL with another node; if the new chain is right, move the index away and run "
                "`counterfoil index run` again."
            )
        raise WrongChainError(
            "The node shares no block with the index. If it is a development chain that was restarted, move the old "
            "index away and deploy again with `ape run deploy` or `make demo`; otherwise correct COUNTERFOIL_RPC_URL."
        )

    def _branch(self, now: _Round, ancestor: int, least: int) -> BlockRange:
        """Fetch the new branch up to where we were, or to its end, before anything is undone."""
        pieces: list[BlockRange] = []
        last = ancestor
        while not pieces or last < least:
            pieces.append(self._fetch(now, last + 1, now.target))
            last = pieces[-1].headers[-1].number
        branch = _joined(pieces)
        _check_parent(branch, self._ours(ancestor))
        self._believe(now.provider, branch)
        return branch


def _joined(pieces: Sequence[BlockRange]) -> BlockRange:
    """Put ranges that follow each other together."""
    for before, after in pairwise(pieces):
        _check_parent(after, before.headers[-1].hash)
    headers = [header for piece in pieces for header in piece.headers]
    logs = [log for piece in pieces for log in piece.logs]
    return BlockRange(tuple(headers), tuple(logs), next((piece.lie for piece in pieces if piece.lie), None))


def _check_parent(fetched: BlockRange, parent: str | None) -> None:
    if fetched.headers[0].parent_hash != parent:
        raise ForkError(f"Block {fetched.headers[0].number} does not follow ours: the chain moved; asking again.")
