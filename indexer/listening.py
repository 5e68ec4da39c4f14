"""The monitor over HTTP: four addresses to read, in a thread of its own, each connection bounded in time and size."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from indexer.errors import SettingsError
from indexer.monitor import Monitor

CONNECTION_SECONDS = 10.0
"""How long a connection may last, whatever its client does."""
_CONNECTIONS = 32
_MAX_HEAD_BYTES = 8192
_STOP_SECONDS = 5


def application(monitor: Monitor) -> Starlette:
    """Make the four addresses."""

    def health(_: Request) -> Response:
        alive, document = monitor.health()
        return JSONResponse(document, 200 if alive else 503)

    def ready(_: Request) -> Response:
        is_ready, document = monitor.ready()
        return JSONResponse(document, 200 if is_ready else 503)

    def status(_: Request) -> Response:
        return JSONResponse(monitor.status())

    def metrics(_: Request) -> Response:
        return Response(monitor.metrics(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route(f"/{each.__name__}", each) for each in (health, ready, status, metrics)])


class _ShortProtocol(H11Protocol):
    """Ends every connection after CONNECTION_SECONDS."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(CONNECTION_SECONDS, transport.abort)


@contextmanager
def listening(monitor: Monitor, address: tuple[str, int]) -> Iterator[str]:
    """Answer at a host and port (0: any free one) until the block is left; gives the URL.

    Raises SettingsError where the address cannot be had.
    """
    listener = _bind(address)
    config = uvicorn.Config(
        application(monitor), http=cast(Any, _ShortProtocol), ws="none", loop="asyncio", lifespan="off",
        log_config=None, access_log=False, limit_concurrency=_CONNECTIONS,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES, timeout_graceful_shutdown=1, server_header=False,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="listening", daemon=True)
    thread.start()
    host, port = listener.getsockname()[:2]
    try:
        yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS)
        listener.close()


def _bind(address: tuple[str, int]) -> socket.socket:
    try:
        family, *_, found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        return socket.create_server(found[:2], family=family)
    except OSError as error:
        host, port = address
        raise SettingsError(
            f"Nothing can listen at {host} port {port} ({error.strerror}): name another address in COUNTERFOIL_LISTEN."
        ) from None
