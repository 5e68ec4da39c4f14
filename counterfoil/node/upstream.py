"""The services behind a node: one HTTP request, its answer read piece by piece within bounds of size and time."""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpcore

AUTHORIZATION: Final = "COUNTERFOIL_UPSTREAM_AUTHORIZATION"
MAX_DETAIL: Final = 500
_KEPT_SECONDS: Final = 1
"""An idle connection is closed before a server's usual five seconds: a call must not meet one that is being closed."""
_SENT: Final = ("accept", "content-type", "last-event-id")
_SENT_PREFIX: Final = "mcp-"
_GIVEN: Final = ("content-type", "mcp-session-id")
_MAX_HEADER: Final = 1024
_SECRET_LENGTH: Final = 8
"""From how many letters on a word of the credentials is looked for: `Bearer` is none."""
_HIDDEN: Final = (401, 403, 407)
"""Statuses about the operator's own credentials: no business of the client's."""


class UpstreamError(Exception):
    """A call that the service did not serve: it charges nothing.

    `status` and `kind` are those of the node's answer; the message is a sentence of ours; `detail` are the service's
    own words about a request that it refuses, and None where they are none of the client's business.
    """

    def __init__(self, status: int, kind: str, sentence: str, detail: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.kind = kind
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as the client made it; `target` is what follows `/call`, with its `?` and query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an answer may cost: seconds until its first byte and as a whole, and bytes."""

    first_seconds: float
    seconds: float
    max_bytes: int


OnHead = Callable[[int, Mapping[str, str]], None]
OnPiece = Callable[[bytes], None]


class Upstreams:
    """Asks services over HTTP and HTTPS, at most `connections` at a time. No proxy, no redirect, nothing unpacked."""

    def __init__(self, bounds: Bounds, connections: int, authorization: str | None = None) -> None:
        self._bounds = bounds
        self._authorization = authorization
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(), max_connections=connections, keepalive_expiry=_KEPT_SECONDS
        )

    async def fetch(self, url: str, ask: Ask, on_head: OnHead, on_piece: OnPiece, bounds: Bounds | None = None) -> None:
        """Ask once. `on_head` hears of status and headers, `on_piece` of each piece of the body.

        Raises UpstreamError for everything but a whole answer with a status of 200 to 299.
        """
        bounds = bounds or self._bounds
        try:
            async with asyncio.timeout(min(bounds.first_seconds, bounds.seconds)) as limit:
                await self._fetch(url, ask, on_head, _within(limit, on_piece, bounds))
        except (TimeoutError, httpcore.TimeoutException):
            raise _late("the service did not answer in time") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as error:
            raise _failed("the service cannot be reached, or broke off its answer") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def _fetch(self, url: str, ask: Ask, on_head: OnHead, on_piece: OnPiece) -> None:
        request = httpcore.Request(
            ask.method, _url(url, ask.target), headers=self._headers(url, ask), content=ask.body or None
        )
        response = await self._pool.handle_async_request(request)
        try:
            status, headers = response.status, _plain(response.headers)
            if not 200 <= status < 300:
                raise _refused(status, self._without_credentials(await _start_of(response)))
            if headers.get("content-encoding", "identity").lower() not in ("", "identity"):
                raise _failed("the service compressed its answer, which was not asked for")
            on_head(status, {name: headers[name] for name in _GIVEN if name in headers})
            async for piece in response.aiter_stream():
                on_piece(piece)
        finally:
            await response.aclose()

    def _without_credentials(self, words: str) -> str:
        """A service's own words, unless they repeat what the operator lets itself in with."""
        own = self._authorization or ""
        secrets = [part for part in (own, *own.split()) if len(part) >= _SECRET_LENGTH]
        return "" if any(part in words for part in secrets) else words

    def _headers(self, url: str, ask: Ask) -> list[tuple[str, str]]:
        sent = [(name, value) for name, value in ask.headers.items() if _is_sent(name.lower())]
        own = [("Host", urlsplit(url).netloc), ("Accept-Encoding", "identity")]
        if ask.body or ask.method in ("POST", "PUT", "PATCH"):
            own.append(("Content-Length", str(len(ask.body))))
        if self._authorization:
            own.append(("Authorization", self._authorization))
        return own + sent


def _is_sent(name: str) -> bool:
    return name in _SENT or name.startswith(_SENT_PREFIX)


def _within(limit: asyncio.Timeout, on_piece: OnPiece, bounds: Bounds) -> OnPiece:
    """Count bytes, and from the first one on give the answer its whole time."""
    ends = asyncio.get_running_loop().time() + bounds.seconds
    size = 0

    def counted(piece: bytes) -> None:
        nonlocal size
        if not size and piece and not limit.expired():
            limit.reschedule(ends)
        size += len(piece)
        if size > bounds.max_bytes:
            raise _failed("the service's answer is larger than this node takes")
        on_piece(piece)

    return counted


def _url(url: str, target: str) -> httpcore.URL:
    parts = urlsplit(url)
    # Path and query as the client sent them: nothing is decoded or put in order on the way.
    path = (parts.path.rstrip("/") + target) if target[:1] == "/" else parts.path + target
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return httpcore.URL(
        scheme=parts.scheme, host=parts.hostname or "", port=port, target=path if path[:1] == "/" else "/" + path
    )


def _plain(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1")[:_MAX_HEADER] for name, value in headers}


async def _start_of(response: httpcore.Response) -> str:
    """The printable beginning of an answer that is not passed on."""
    start = b""
    try:
        async for piece in response.aiter_stream():
            start += piece
            if len(start) >= 4 * MAX_DETAIL:
                break
    except httpcore.ProtocolError:
        pass  # what there is of it is enough
    words = " ".join(start[: 4 * MAX_DETAIL].decode(errors="replace").split())
    return "".join(letter for letter in words if letter.isprintable())[:MAX_DETAIL]


def _refused(status: int, words: str) -> UpstreamError:
    if 400 <= status < 500 and status not in _HIDDEN:
        return UpstreamError(status, "upstream_refused", f"the service refused the request with status {status}", words)
    if status in _HIDDEN:
        return _failed("the service does not let this node in")
    if 300 <= status < 400:
        return _failed("the service answered with a redirect, which is not followed")
    return _failed("the service failed")


def _failed(sentence: str) -> UpstreamError:
    return UpstreamError(502, "upstream_failed", f"{sentence}; the call charges nothing")


def _late(sentence: str) -> UpstreamError:
    return UpstreamError(504, "upstream_timeout", f"{sentence}; the call charges nothing")
