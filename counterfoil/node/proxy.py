"""Calls in flight: each is let in, asked of the upstream, kept or dropped by a task of its own, whatever its client
does.
"""

import asyncio
import time
from typing import Final

import structlog
from starlette.concurrency import run_in_threadpool

from counterfoil.node.book import Answer
from counterfoil.node.gate import Admitted, Gate
from counterfoil.node.metrics import Metrics, outcome_of
from counterfoil.node.relay import Relay
from counterfoil.node.upstream import Ask, UpstreamError, Upstreams
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher
from counterfoil.node.wire import Failure, request_digest

_STOPPED: Final = "the node was stopped; the call charges nothing"
_log = structlog.get_logger()


class FailedError(Exception):
    """A call that the service did not serve, with the failure that the operator signed for it."""

    def __init__(self, cause: UpstreamError, failure: Failure) -> None:
        super().__init__(str(cause))
        self.status = cause.status
        self.kind = cause.kind
        self.detail = cause.detail
        self.failure = failure


class Proxy:
    """At most `most` calls at a time."""

    def __init__(self, gate: Gate, upstreams: Upstreams, metrics: Metrics, most: int) -> None:
        self.most = most
        self.asking = 0
        self._gate = gate
        self._upstreams = upstreams
        self._metrics = metrics
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def in_flight(self) -> int:
        """How many calls are not done."""
        return len(self._tasks)

    def start(self, voucher: Voucher, ask: Ask) -> Relay:
        """Begin to serve a call; what becomes of it is in the relay. Raises RefusedError where there are too many."""
        if self._stopping:
            raise RefusedError(Refusal.OVERLOADED, "the node is being stopped; call again in a moment")
        if len(self._tasks) >= self.most:
            raise RefusedError(Refusal.OVERLOADED, f"the node serves {self.most} calls already; call again in a moment")
        relay = Relay()
        task = asyncio.create_task(self._run(voucher, ask, relay))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return relay

    async def drain(self, seconds: float) -> None:
        """Take no more calls, and give those in flight so long; what is not done then charges nothing."""
        self._stopping = True
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, voucher: Voucher, ask: Ask, relay: Relay) -> None:
        began = time.monotonic()
        try:
            await self._serve(voucher, ask, relay)
        except Exception as error:  # noqa: BLE001 - it is told to the client's task, which raises it
            relay.fail(error)
        except asyncio.CancelledError:
            relay.fail(RefusedError(Refusal.OVERLOADED, _STOPPED))
            raise
        first = relay.first_at - began if relay.first_at else None
        self._metrics.call(outcome_of(relay.error, relay.replayed), first, time.monotonic() - began)

    async def _serve(self, voucher: Voucher, ask: Ask, relay: Relay) -> None:
        request = request_digest(ask.method, ask.target, ask.body)
        admitted = await run_in_threadpool(self._gate.admit, voucher, request)
        if isinstance(admitted, Answer):
            relay.replay(admitted)
            return
        self.asking += 1
        try:
            await self._upstreams.fetch(admitted.upstream, ask, relay.head, relay.piece)
            await run_in_threadpool(self._gate.keep, admitted, relay.answer())
        except UpstreamError as error:
            raise await self._failed(admitted, error) from error
        except BaseException:
            self._gate.drop(admitted)  # on this thread: a task that is being ended cannot wait for another
            raise
        finally:
            self.asking -= 1
        relay.keep()

    async def _failed(self, call: Admitted, error: UpstreamError) -> FailedError:
        _log.warning(
            "call_failed", session_id=call.voucher.session_id, calls=call.voucher.calls, status=error.status,
            cause=repr(error.__cause__)[:200], message=f"A call was not served: {error}.",
        )  # fmt: skip
        return FailedError(error, await run_in_threadpool(self._gate.failed, call, error.status, str(error)))
