"""The metrics of one API process, in Prometheus' text format. Every label has few values, whatever is asked."""

import threading
import time
from contextlib import suppress
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client import generate_latest as rendered
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer import query
from indexer.errors import IndexerError
from indexer.query import Store

MEDIA_TYPE: Final = CONTENT_TYPE_LATEST
OTHER: Final = "other"
"""The label of a path that no endpoint has, and of a method that HTTP does not name."""
READ_SECONDS: Final = 1.0
"""How old the index's block may be that an answer repeats, so that many questions cost the database one."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
_BUCKETS: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 20.0)


class Metrics:
    """Counts requests and their seconds by the endpoint's template, and says how far the index is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "counterfoil_api_requests", "Requests that were answered.", ("route", "method", "status"),
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "counterfoil_api_request_seconds", "From a request's head to the end of its answer.", ("route",),
            buckets=_BUCKETS, registry=self._registry,
        )  # fmt: skip
        self._block = Gauge("counterfoil_api_index_block", "The newest indexed block.", registry=self._registry)
        self._ready = Gauge("counterfoil_api_ready", "1 where the index can be asked.", registry=self._registry)

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Take note of one request."""
        self._requests.labels(route, method if method in _METHODS else OTHER, status).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """The metrics; the index is asked at most once in READ_SECONDS."""
        with self._lock:
            if time.monotonic() - self._read_at >= READ_SECONDS:
                self._look()
                self._read_at = time.monotonic()
        return rendered(self._registry)

    def _look(self) -> None:
        block = None
        with suppress(IndexerError):  # empty, or busy
            block = query.as_of(self._store).block
        self._ready.set(block is not None)
        self._block.set(float("nan") if block is None else block)  # unknown is not 0


class Counting:
    """Tells the metrics of every request that another application answers."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500  # what the server answers where the application raises

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            self._metrics.count(route, scope["method"], status, time.monotonic() - began)
