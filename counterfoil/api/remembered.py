"""Answers about the directory are kept until the index moves: a question that was asked before costs a look.

Whatever the directory answers follows from the question and from how far the index is. Each request has the database
say how far that is, after it came; requests that come together have one such look in common.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer.changes import Place, newest_place
from indexer.errors import IndexerError
from indexer.query import Store

MAX_BYTES = 64 * 2**20
"""How much of all answers together is kept."""
MAX_ANSWER_BYTES = 2**20
_PATHS = "/services"


class Remembered:
    """The application, and before it what it answered to GET /services and below since the index last moved."""

    def __init__(self, app: ASGIApp, store: Store, most: int = MAX_BYTES) -> None:
        self._app, self._most = app, most
        self._look = Shared(lambda: newest_place(store))
        self._place: Place | None = None
        self._answers: OrderedDict[bytes, _Answer] = OrderedDict()
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory where that is possible, else let the application answer and keep it."""
        place = await self._moved_on() if _is_kept(scope) else None
        if place is None:
            await self._app(scope, receive, send)
            return
        question = (scope.get("raw_path") or scope["path"].encode()) + b"?" + scope["query_string"]
        answer = self._answers.get(question)
        if answer is None:
            answer = _Answer()
            await self._app(scope, receive, answer.hearing(send))
            answer.route = scope.get("route")
            self._keep(question, answer, place)
            return
        self._answers.move_to_end(question)
        await answer.tell(scope, send)

    async def _moved_on(self) -> Place | None:
        """Forget all where the index moved; None where it does not say how far it is."""
        try:
            place = await self._look()
        except IndexerError:  # the application says it better
            return None
        if place != self._place:
            self._place, self._bytes = place, 0
            self._answers.clear()
        return place

    def _keep(self, question: bytes, answer: "_Answer", place: Place) -> None:
        is_of_place = answer.is_whole and answer.etag.startswith(f'"{place[1]}')
        if place != self._place or not is_of_place or question in self._answers:
            return  # the index moved meanwhile
        self._answers[question] = answer
        self._bytes += answer.size(question)
        while self._bytes > self._most:
            old, dropped = self._answers.popitem(last=False)
            self._bytes -= dropped.size(old)


class Shared:
    """A reading that callers have in common: each gets one that began after its call."""

    def __init__(self, read: Callable[[], Place | None]) -> None:
        self._read = read
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[Place | None] | None = None

    async def __call__(self) -> Place | None:
        """Give what is read from here on; raises what the reading raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._take_turn())
        return await asyncio.shield(self._next)

    async def _take_turn(self) -> Place | None:
        async with self._turn:
            self._next = None  # who comes from here on needs one that begins later
            return await asyncio.to_thread(self._read)  # not among the threads that work on answers


@dataclass(slots=True)
class _Answer:
    """What the application sent."""

    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    etag: str = ""
    route: object = None
    is_whole: bool = False

    def size(self, question: bytes) -> int:
        """Bytes of it and of its question, roughly."""
        return len(self.body) + len(question) + 1000

    def hearing(self, send: Send) -> Send:
        """Take down what is sent."""

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                self.headers = list(message["headers"])
                self.etag = Headers(raw=self.headers).get("etag", "")
            elif message["type"] == "http.response.body" and self.etag:
                self.body += message.get("body", b"")
                self.is_whole = not message.get("more_body") and len(self.body) <= MAX_ANSWER_BYTES
            await send(message)

        return heard

    async def tell(self, scope: Scope, send: Send) -> None:
        """Send it again; 304 where the client has it."""
        scope["route"] = self.route  # by which requests are counted
        known = is_known(self.etag, Headers(scope=scope))
        headers = [header for header in self.headers if not known or header[0] in {b"etag", b"link"}]
        await send({"type": "http.response.start", "status": 304 if known else 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if known else self.body})


def is_known(etag: str, headers: Headers) -> bool:
    """Tell whether a client says that it has an answer: weak comparison, as RFC 9110 (13.1.2) asks for."""
    told = ",".join(headers.getlist("if-none-match")).split(",")
    return any(tag.strip().removeprefix("W/") in {etag, "*"} for tag in told)


def _is_kept(scope: Scope) -> bool:
    return scope["type"] == "http" and scope["method"] == "GET" and str(scope["path"]).startswith(_PATHS)
