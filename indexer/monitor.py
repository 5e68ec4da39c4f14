"""What the running index says of itself: whether it lives, whether it is ready, how far it is, and its metrics.

It observes the loop's notices. Everything here is a value that may be shown to anybody: no secret, nothing of the
node's that was not checked.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from indexer import query
from indexer.deployment import Deployment
from indexer.errors import IndexerError
from indexer.notices import (
    Ended,
    Notice,
    ProviderChanged,
    Reading,
    Replaced,
    Retried,
    Stepped,
    Waiting,
    Weakened,
    Writing,
)
from indexer.settings import Settings
from indexer.store.database import Store
from indexer.store.lock import Holder, this_process
from indexer.views import Status

Document = dict[str, Any]
COUNTS_SECONDS = 1.0
"""How old the counts may be that an answer repeats, so that many questions cost the database one."""


class Metrics:
    """The Prometheus metrics of one run, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.block = self._gauge("block", "The last indexed block.")
        self.head = self._gauge("head_block", "The node's newest block.")
        self.verified = self._gauge("verified_block", "The last block that the node still shows as it was indexed.")
        self.finalized = self._gauge("finalized_block", "The highest indexed block that is final.")
        self.lag_blocks = self._gauge("lag_blocks", "Blocks between the index and where it should be.")
        self.lag_seconds = self._gauge("lag_seconds", "Seconds of chain time between the head and the last block.")
        self.head_timestamp = self._gauge("head_timestamp_seconds", "The time of the node's newest block.")
        self.ready = self._gauge("ready", "1 where /ready answers 200, else 0.")
        self.quarantined = self._gauge("quarantined_logs", "Logs that changed nothing.")
        self.set_aside = self._gauge("providers_set_aside", "Providers that are not asked.")
        self.range = self._gauge("range_blocks", "Blocks of the last range that was asked for.")
        self.logs = self._counter("logs", "Logs written in this run.")
        self.blocks = self._counter("blocks", "Blocks written in this run.")
        self.rolled_back = self._counter("rolled_back_blocks", "Blocks undone in this run.")
        self.retries = self._counter("retries", "Failures of the source, by the class of the error.", "error")
        self.reorgs = self._histogram("reorg_depth_blocks", "Reorganisations by depth.", (1, 2, 4, 8, 16, 32, 64, 128))
        self.seconds = self._histogram(
            "step_seconds", "Duration of the steps that wrote blocks, by phase.",
            (0.001, 0.005, 0.02, 0.1, 0.5, 1, 5, 20, 60), "phase",
        )  # fmt: skip

    def _gauge(self, name: str, text: str) -> Gauge:
        gauge = Gauge(f"counterfoil_index_{name}", text, registry=self.registry)
        gauge.set(float("nan"))  # unknown is not 0
        return gauge

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"counterfoil_index_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"counterfoil_index_{name}", text, labels, buckets=buckets, registry=self.registry)


class Monitor:
    """Observes one run of the index. The loop's thread tells, any other may ask."""

    def __init__(self, settings: Settings, deployment: Deployment, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._deployment = deployment
        self._clock = clock
        self._patience = settings.stalled_seconds + settings.poll_seconds
        self._metrics = Metrics()
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._store: Store | None = None
        self._writer: Holder | None = None
        self._counts: tuple[float, Status | None] = (float("-inf"), None)
        self._last_sign = self._last_answer = clock()
        self._step: Stepped | None = None
        self._caught_up = False
        self._trouble: str | None = None
        self._reorgs = 0
        self._aside: dict[str, str | None] = dict.fromkeys(settings.shown_rpc_urls())
        self._weakened: dict[str, str] = {}
        self._metrics.set_aside.set(0)

    def observe(self, notice: Notice) -> None:
        """Take note of what the loop tells; an `indexer.notices.Observer`."""
        with self._lock:
            self._last_sign = self._clock()
            match notice:
                case Waiting(error=error):
                    self._trouble = f"standing by for {error.holder or 'the process that writes'}"
                case Writing(store=store):
                    self._store, self._trouble = store, None
                    self._writer = this_process()
                case Reading(first=first, last=last):
                    self._metrics.range.set(last - first + 1)
                case Stepped():
                    self._stepped(notice)
                case Replaced(depth=depth):
                    self._reorgs += 1
                    self._metrics.reorgs.observe(depth)
                    self._metrics.rolled_back.inc(depth)
                case Retried(error=failure):
                    self._trouble = str(failure)
                    self._metrics.retries.labels(type(failure).__name__).inc()
                case ProviderChanged(provider=provider, set_aside=set_aside):
                    self._aside[provider] = set_aside
                    self._metrics.set_aside.set(sum(why is not None for why in self._aside.values()))
                case Weakened(provider=provider, why=why):
                    self._weakened[provider] = why
                case Ended():
                    self._store = None

    def _stepped(self, step: Stepped) -> None:
        self._step, self._trouble = step, None
        self._last_answer = self._clock()
        self._caught_up = self._is_caught_up(step)
        metrics = self._metrics
        metrics.block.set(step.cursor.number)
        metrics.head.set(step.head.number)
        metrics.verified.set(_verified(step))
        metrics.lag_blocks.set(self._lag(step))
        metrics.head_timestamp.set(step.head.timestamp)
        if step.cursor.finalized is not None:
            metrics.finalized.set(step.cursor.finalized)
        seconds = _lag_seconds(step)
        if seconds is not None:
            metrics.lag_seconds.set(seconds)
        if step.blocks:
            metrics.blocks.inc(step.blocks)
            metrics.logs.inc(step.logs)
            metrics.seconds.labels("read").observe(step.read_seconds)
            metrics.seconds.labels("write").observe(step.write_seconds)

    def health(self) -> tuple[bool, Document]:
        """Whether the loop gave a sign within `stalled_seconds`: a step, a wait, or a retry."""
        with self._lock:
            silent = self._clock() - self._last_sign
        alive = silent <= self._patience
        return alive, {"status": "ok" if alive else "stalled", "silent_seconds": round(silent, 3)}

    def ready(self) -> tuple[bool, Document]:
        """Whether answers of the index are of the chain as it is now, and if not, why and how far they are."""
        with self._lock:
            why = self._why_not_ready()
            step = self._step
        far = {
            "block": step.cursor.number if step else None,
            "head": step.head.number if step else None,
            "lag_blocks": self._lag(step) if step else None,
        }
        return why is None, {"ready": why is None, "why": why, **far}

    def status(self) -> Document:
        """Everything that is known of the run, as JSON."""
        counts = self._counted()
        with self._lock:
            why, step = self._why_not_ready(), self._step
            document = {
                "chain_id": self._deployment.chain_id,
                "ready": why is None,
                "why": why,
                "providers": self._provider_documents(),
                "reorgs": self._reorgs,
                "writer": None if self._writer is None else asdict(self._writer),
            }
        return document | (_step_document(step, self._lag(step)) if step else {}) | _counts_document(counts)

    def metrics(self) -> bytes:
        """The metrics in Prometheus' text format."""
        counts = self._counted()
        if counts is not None:
            self._metrics.quarantined.set(counts.quarantined)
        self._metrics.ready.set(self.ready()[0])
        return generate_latest(self._metrics.registry)

    def _provider_documents(self) -> list[Document]:
        return [
            {"name": name, "set_aside": why, "weakened": self._weakened.get(name)} for name, why in self._aside.items()
        ]

    def _why_not_ready(self) -> str | None:
        step = self._step
        if step is None:
            return self._trouble or "the node was not asked yet"
        if self._clock() - self._last_answer > self._patience:
            return self._trouble or "the node does not answer"
        if step.outcome == "held":
            return "held: the node's head is below the index, and agrees with it"
        if not self._caught_up:
            return "catching up with the chain"
        return None

    def _is_caught_up(self, step: Stepped) -> bool:
        """Only a round that had nothing to read shows the head of now: a step's is that of its round's beginning."""
        if step.outcome == "current":
            return True
        return self._caught_up and self._lag(step) <= self._settings.ready_lag_blocks

    def _lag(self, step: Stepped) -> int:
        return max(0, step.head.number - self._settings.confirmations - step.cursor.number)

    def _counted(self) -> Status | None:
        """Count rows, at most once a second; None while there is no index to ask."""
        with self._counting:
            at, counts = self._counts
            store = self._store
            if store is None or self._clock() - at < COUNTS_SECONDS:
                return counts
            with contextlib.suppress(IndexerError):  # empty, or busy: the last counts stand
                counts = query.status(store).value
            self._counts = (self._clock(), counts)
            return counts


def _verified(step: Stepped) -> int:
    # Nothing is written unchecked, so only a head below ours leaves blocks that this node does not vouch for.
    return min(step.cursor.number, step.head.number)


def _lag_seconds(step: Stepped) -> int | None:
    return None if step.timestamp is None else max(0, step.head.timestamp - step.timestamp)


def _step_document(step: Stepped, lag: int) -> Document:
    return {
        "head": {"number": step.head.number, "hash": step.head.hash, "timestamp": step.head.timestamp},
        "block": {"number": step.cursor.number, "hash": step.cursor.hash, "timestamp": step.timestamp},
        "verified_block": _verified(step),
        "finalized_block": step.cursor.finalized,
        "lag_blocks": lag,
        "lag_seconds": _lag_seconds(step),
        "held": step.outcome == "held",
    }


def _counts_document(counts: Status | None) -> Document:
    if counts is None:
        return {}
    document = asdict(counts)
    return {name: document[name] for name in document if name != "finalized_block"}
