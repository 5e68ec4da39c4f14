"""Run one of the demo's services: `python -m counterfoil.demo.upstreams data`, `search` or `completion`."""

import asyncio
import signal
import socket
import sys
from importlib import import_module

import click
import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HOST = "127.0.0.1"
KINDS = ("data", "search", "completion")
STOP_SECONDS = 3


class Mannered:
    """An application with manners put on: it is slow, or fails, or neither; `/health` always answers at once."""

    def __init__(self, app: ASGIApp, delay: float, failing: bool) -> None:
        self._app = app
        self._delay = delay
        self._failing = failing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on the server's start and end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == "/health":
            await JSONResponse({"status": "ok"})(scope, receive, send)
        else:
            await asyncio.sleep(self._delay)
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        broken = JSONResponse({"error": {"message": "This service fails on purpose."}}, status_code=500)
        await (broken if self._failing else self._app)(scope, receive, send)


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Port; 0 takes a free one.")
@click.option("--delay", type=click.FloatRange(0, 600), default=0, help="Seconds to wait before every answer.")
@click.option("--failing", is_flag=True, help="Answer every call with status 500.")
def main(kind: str, port: int, delay: float, failing: bool) -> None:
    """Serve on 127.0.0.1 until ended, and print the address as the first line."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    app = import_module(f"counterfoil.demo.upstreams.{kind}").create_app()  # the MCP SDK only where it is needed
    with socket.create_server((HOST, port)) as listening:
        click.echo(f"http://{HOST}:{listening.getsockname()[1]}")
        sys.stdout.flush()
        config = uvicorn.Config(
            Mannered(app, delay, failing), log_level="warning", timeout_graceful_shutdown=STOP_SECONDS
        )
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
