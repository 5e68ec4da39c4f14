"""The Prometheus metrics of one node, in a registry of their own. Every label has few values."""

import time
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from counterfoil.chain.connection import Block
from counterfoil.node.book import Record, Stage
from counterfoil.node.vouchers import RefusedError

_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """What `/metrics` answers; `settled`, `lost` and the like are outcomes of settlements."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._calls = Counter(
            "counterfoil_node_calls", "Calls by what became of them.", ("outcome",), registry=self.registry
        )
        self._first = self._histogram("first_byte_seconds", "From a call to the first byte of its answer's body.")
        self._whole = self._histogram("call_seconds", "From a call to the end of its answer.")
        self.in_flight = self._gauge("calls_in_flight", "Calls that are not done.")
        self._unsettled = self._gauge("unsettled", "What unsettled vouchers are over together, in base units.")
        self._sessions = Gauge(
            "counterfoil_node_sessions", "Sessions by how far they are.", ("state",), registry=self.registry
        )
        self._settlements = Counter(
            "counterfoil_node_settlements", "Settlements by what became of them.", ("outcome",), registry=self.registry
        )
        self.stuck = self._gauge("stuck_sessions", "Sessions whose settlement the chain refuses for good.")
        self.heartbeats = Counter(
            "counterfoil_node_heartbeats", "Heartbeats that were posted, by outcome.", ("outcome",),
            registry=self.registry,
        )  # fmt: skip
        self._head = self._gauge("head_block", "The chain's newest block.")
        self._timestamp = self._gauge("head_timestamp_seconds", "The time of the chain's newest block.")
        self._lag = self._gauge("chain_lag_seconds", "How far the newest block's time is behind this machine's clock.")
        self.stuck.set(0)

    def call(self, outcome: str, first_seconds: float | None, seconds: float) -> None:
        """Take note of a call that is done; `first_seconds` is None where no byte came."""
        self._calls.labels(outcome).inc()
        self._whole.observe(seconds)
        if first_seconds is not None:
            self._first.observe(first_seconds)

    def refused(self, outcome: str) -> None:
        """Take note of a request that was no call."""
        self._calls.labels(outcome).inc()

    def settlement(self, outcome: str) -> None:
        """Take note of a settlement."""
        self._settlements.labels(outcome).inc()

    def looked(self, head: Block) -> None:
        """Take note of the newest block."""
        self._head.set(head.number)
        self._timestamp.set(head.timestamp)
        self._lag.set(max(0.0, time.time() - head.timestamp))

    def booked(self, records: list[Record]) -> None:
        """Take note of the sessions that are not final."""
        self._unsettled.set(sum(record.payable.amount for record in records if not record.is_settled))
        for stage in (Stage.OPEN, Stage.SETTLING, Stage.SETTLED):
            self._sessions.labels(stage).set(sum(record.stage is stage for record in records))

    def text(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        gauge = Gauge(f"counterfoil_node_{name}", text, registry=self.registry)
        gauge.set(float("nan"))  # unknown is not 0
        return gauge

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(f"counterfoil_node_{name}", text, buckets=_BUCKETS, registry=self.registry)


def outcome_of(error: Exception | None, replayed: bool) -> str:
    """What became of a call, as a label: a refusal's type, a failure's type, or that it was served."""
    if isinstance(error, RefusedError):
        return str(error.refusal)
    if error is not None:
        return str(getattr(error, "kind", "error"))
    return "replayed" if replayed else "served"
