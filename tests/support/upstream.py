"""An upstream whose behaviour each test sets: it answers, streams, hangs, lies, or breaks off."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support.market import serving

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True)
class Got:
    """A request as it arrived."""

    method: str
    path: str
    query: str
    headers: dict
    body: bytes


class BreakError(Exception):
    """Makes the server break its answer off."""


class Upstream:
    """`behave` is an async function from a request to its response; `got` are the requests that arrived.

    `models` is what it answers when it is asked for its models, which no call does here.
    """

    def __init__(self):
        self.got = []
        self.behave = echo
        self.models = None
        self.gates = []
        self.url = ""

    def gate(self):
        """Something that behaviours wait for, and that opens at the latest when the test ends."""
        self.gates.append(threading.Event())
        return self.gates[-1]

    def app(self):
        async def answer(request):
            body = await request.body()
            scope = request.scope
            if scope["path"].endswith("/v1/models"):
                return Response(status_code=404) if self.models is None else Response(self.models)
            self.got.append(
                Got(
                    request.method,
                    scope["raw_path"].decode(),
                    scope["query_string"].decode(),
                    dict(request.headers),
                    body,
                )
            )
            return await self.behave(request)

        return Starlette(routes=[Route("/{rest:path}", answer, methods=METHODS)])


@contextmanager
def upstream():
    """Serve one until the block ends."""
    made = Upstream()
    with serving(made.app()) as url:
        made.url = url
        try:
            yield made
        finally:
            for gate in made.gates:
                gate.set()


async def echo(request):
    return JSONResponse({"echo": (await request.body()).decode()})


def answering(body=b"{}", status=200, **headers):
    async def behave(_):
        return Response(body, status, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return behave


def streaming(*pieces, kind="text/event-stream"):
    """Give the pieces one after the other; one that is a gate is waited for, one that is an error breaks off."""

    async def parts():
        for piece in pieces:
            if isinstance(piece, threading.Event):
                assert await run_in_threadpool(piece.wait, 60)
            elif isinstance(piece, Exception):
                raise piece
            else:
                yield piece

    async def behave(_):
        return StreamingResponse(parts(), media_type=kind)

    return behave


def hanging(gate):
    """Answer nothing until the gate opens."""

    async def behave(_):
        assert await run_in_threadpool(gate.wait, 60)
        return Response(b"late")

    return behave


def claiming(length, body):
    """Say that the answer is of another length than it is."""

    async def behave(_):
        return Response(body, headers={"content-length": str(length)})

    return behave
