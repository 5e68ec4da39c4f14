"""One bounded HTTP request: one deadline, a limit of raw bytes, nothing decompressed, no proxy and no redirect.

Whatever answers may be hostile. Nothing of the environment decides where a request goes: what the settings or the
registry name is what is asked, on loopback as elsewhere.
"""

import base64
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import httpcore

_MAX_CONNECTIONS = 100
_KEPT_SECONDS = 5
_PIECE = 4096  # bytes of a request between two looks at the clock
_deadline: ContextVar[float] = ContextVar("deadline")


class HttpError(Exception):
    """A request without a usable answer; the message says what happened and holds nothing of the URL."""


class NoConnectionError(HttpError):
    """Nobody answers, or the connection broke, or what came is no HTTP."""


class OutOfTimeError(HttpError):
    """The whole answer was not there in time."""


class TooLargeError(HttpError):
    """The answer is larger than was allowed."""


class EncodedError(HttpError):
    """The answer is compressed although it was asked not to be: unpacked it might be of any size."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer's status, its whole body, and two of its headers as they came ("" where there is none)."""

    status: int
    body: bytes
    retry_after: str = ""
    content_type: str = ""


class BoundedHttp:
    """Asks over HTTP and HTTPS, and keeps connections for the next request. Threads may share one.

    `seconds` bounds a request as a whole: connecting, TLS, sending, headers and body; only the system's look-up of a
    name keeps its own time. `max_bytes` bounds the body as it came.
    """

    def __init__(self, *, seconds: float, max_bytes: int) -> None:
        self.seconds = seconds
        self.max_bytes = max_bytes
        self._pool = httpcore.ConnectionPool(
            max_connections=_MAX_CONNECTIONS, keepalive_expiry=_KEPT_SECONDS, network_backend=_TimedBackend()
        )

    def request(
        self,
        method: str,
        url: str,
        *,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        server_name: str | None = None,
    ) -> HttpAnswer:
        """Ask once; `server_name` is the name that the certificate must bear where the URL holds an address.

        Raises HttpError. Any status is an answer.
        """
        mark = _deadline.set(time.monotonic() + self.seconds)
        try:
            return self._ask(method, url, content, headers or {}, server_name)
        except httpcore.TimeoutException as error:
            raise OutOfTimeError(f"no whole answer in {self.seconds:g} s") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as error:
            raise NoConnectionError(f"the connection failed: {type(error).__name__}") from error
        except (ValueError, TypeError) as error:
            raise NoConnectionError("the URL or a header cannot be sent") from error
        finally:
            _deadline.reset(mark)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def __enter__(self) -> "BoundedHttp":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self, method: str, url: str, content: bytes, headers: Mapping[str, str], server_name: str | None
    ) -> HttpAnswer:
        extensions: dict[str, Any] = {"timeout": {"pool": self.seconds}}
        if server_name is not None:
            extensions["sni_hostname"] = server_name
        sent = {**_own_headers(url), **headers}
        with self._pool.stream(
            method, url, headers=list(sent.items()), content=content, extensions=extensions
        ) as response:
            _refuse_encoded(response.headers)
            body = self._read(response.iter_stream())
            retry_after, kind = (_header(response.headers, name) for name in (b"retry-after", b"content-type"))
            return HttpAnswer(response.status, body, retry_after, kind)

    def _read(self, chunks: Iterable[bytes]) -> bytes:
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > self.max_bytes:
                raise TooLargeError(f"the answer is over {self.max_bytes} bytes")
        return bytes(body)


def is_url(url: str, schemes: tuple[str, ...] = ("http", "https")) -> bool:
    """Whether a text is a URL of one of these schemes, with a host and in plain characters."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return usable and url.isascii() and url.isprintable() and " " not in url


def without_secrets(url: str) -> str:
    """Name a server without user, path and query: keys of hosted RPCs stand in those."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}"


def _own_headers(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    headers = {"Host": parts.netloc.rpartition("@")[2], "Accept": "*/*", "Accept-Encoding": "identity"}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return headers


def _header(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in headers if name.lower() == wanted), "")


def _refuse_encoded(headers: Iterable[tuple[bytes, bytes]]) -> None:
    for name, value in headers:
        if name.lower() == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise EncodedError("the answer is compressed, which was not asked for")


# --- the clock


def _left() -> float:
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout
    return left


class _TimedBackend(httpcore.NetworkBackend):
    """Connects with the time that is left to the request, however many addresses a name has."""

    def __init__(self) -> None:
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Try each address of the host in turn."""
        with _as_connect_errors():
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        options = list(socket_options or ())
        failure: httpcore.NetworkError = httpcore.ConnectError("the host has no address")
        for *_, address in found:
            try:
                plain = self._plain.connect_tcp(str(address[0]), port, _left(), local_address, options)
                return _TimedStream(plain)
            except httpcore.ConnectError as error:
                failure = error
        raise failure


@dataclass(frozen=True, slots=True)
class _TimedStream(httpcore.NetworkStream):
    """A connection each of whose waits ends with the request's deadline, whatever it was told."""

    plain: httpcore.NetworkStream = field(repr=False)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self.plain.read(max_bytes, _left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        for at in range(0, len(buffer), _PIECE):
            self.plain.write(buffer[at : at + _PIECE], _left())

    def close(self) -> None:
        self.plain.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        return _TimedStream(self.plain.start_tls(ssl_context, server_hostname, _left()))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401
        return self.plain.get_extra_info(info)


@contextmanager
def _as_connect_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(str(error)) from error
