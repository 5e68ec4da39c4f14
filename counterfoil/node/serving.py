"""A node's process: its HTTP server, its watch and its heartbeats, until it is told to stop."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Generator
from typing import Any, Final, cast

import structlog
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from counterfoil.node.node import Node
from counterfoil.node.server import create_app
from indexer.errors import UserError

HEAD_SECONDS: Final = 10.0
"""How long a connection may be without a request's whole head."""
KEEP_ALIVE_SECONDS: Final = 5
MAX_HEAD_BYTES: Final = 16 * 2**10
SPARE_CONNECTIONS: Final = 64
"""Connections beside the calls: for questions about the node, and between two calls."""
_log = structlog.get_logger()


def bind(address: tuple[str, int]) -> socket.socket:
    """Listen at a host and port (0: any free one). Raises UserError where that cannot be had."""
    host, port = address
    try:
        family, *_, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(found[:2], family=family)
    except OSError as error:
        raise UserError(
            f"Nothing can listen at {host} port {port} ({error.strerror}): name another address with --node-listen."
        ) from None


def url_of(listener: socket.socket) -> str:
    """The URL at which a listener is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(node: Node, listener: socket.socket, stop: threading.Event) -> None:
    """Serve a node until told to stop: then no more calls, those in flight to their end, and the book closed."""
    watching = threading.Thread(target=node.watch.run, args=(stop,), name=f"watch-{node.node_id}", daemon=True)
    watching.start()
    try:
        asyncio.run(_serve(node, listener, stop))
    finally:
        stop.set()
        node.watch.wake()
        watching.join(node.settings.node_stop_seconds)
        node.close()
        listener.close()


async def _serve(node: Node, listener: socket.socket, stop: threading.Event) -> None:
    beating = asyncio.create_task(node.heart.run())
    server = _Server(_config(node), stop.is_set, node)
    try:
        await server.serve(sockets=[listener])
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        await node.upstreams.close()


def _config(node: Node) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what clients do wrong is no news
    return uvicorn.Config(
        create_app(node), http=cast(Any, _Protocol), ws="none", loop="asyncio", lifespan="off", log_config=None,
        access_log=False, server_header=False, limit_concurrency=node.settings.node_max_calls + SPARE_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=max(1, int(node.settings.node_stop_seconds)),
    )  # fmt: skip


class _Server(uvicorn.Server):
    """Stops when it is told to, and first lets the calls in flight end."""

    def __init__(self, config: uvicorn.Config, is_told: Callable[[], bool], node: Node) -> None:
        super().__init__(config)
        self._is_told = is_told
        self._node = node

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the command's."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Whether to stop."""
        return await super().on_tick(counter) or self._is_told()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let the calls in flight end, then close."""
        for each in self.servers:
            each.close()
        await self._node.proxy.drain(self._node.settings.node_stop_seconds)
        await super().shutdown(sockets)


class _Protocol(H11Protocol):
    """Ends a connection that for HEAD_SECONDS neither sends a whole head nor is answered, or cannot be closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(HEAD_SECONDS, self._look, None)

    def _look(self, idle_since: object) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing() or (is_idle and self.cycle is idle_since):
            self.transport.abort()
            return
        # A cycle that is not over is no mark of idleness: `self` is none.
        self.loop.call_later(HEAD_SECONDS, self._look, self.cycle if is_idle else self)
