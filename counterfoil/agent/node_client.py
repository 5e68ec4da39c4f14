"""An agent's calls to one node: bounded in size and time, never redirected."""

import json
from dataclasses import dataclass
from typing import Any

from counterfoil.agent.endpoint import EndpointError, resolve
from counterfoil.node.vouchers import Voucher
from counterfoil.node.wire import voucher_headers
from indexer.http import BoundedHttp, EncodedError, HttpAnswer, HttpError, OutOfTimeError, TooLargeError

MAX_ANSWER = 2**20


class NodeError(Exception):
    """A node that gave no usable answer; the message is a sentence for the receipt."""


class NodeRefusedError(NodeError):
    """A node that answered with an error of its own; `kind` is its type, "" where it gave none."""

    def __init__(self, status: int, kind: str) -> None:
        super().__init__(f"the node answered {status} {kind}".rstrip())
        self.status = status
        self.kind = kind


@dataclass(frozen=True, slots=True)
class NodeClient:
    """One node's endpoint; `seconds` bounds each request as a whole, MAX_ANSWER its answer (see `BoundedHttp`)."""

    endpoint: str
    seconds: float = 10
    allow_private: bool = False

    def probe(self) -> None:
        """Ask whether the node answers. Raises NodeError when it does not."""
        self._request("GET", "/health", {}, b"")

    def call(self, voucher: Voucher, body: bytes) -> bytes:
        """Make one paid call."""
        return self._request("POST", "/call", voucher_headers(voucher), body)

    def settle(self, last: Voucher) -> None:
        """Ask the node to settle at the last voucher."""
        self._request("POST", "/settle", voucher_headers(last), b"")

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
        answer = self._send(method, path, headers, body)
        if answer.status != 200:
            raise NodeRefusedError(answer.status, _kind(answer.body))
        return answer.body

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        try:
            target = resolve(self.endpoint, allow_private=self.allow_private)
            sent = {**headers, "Host": target.host}
            with BoundedHttp(seconds=self.seconds, max_bytes=MAX_ANSWER) as http:
                return http.request(method, target.url + path, content=body, headers=sent, server_name=target.name)
        except (EndpointError, OutOfTimeError, TooLargeError, EncodedError) as error:
            raise NodeError(str(error)) from error
        except HttpError as error:
            raise NodeError("the connection failed") from error


def _kind(answer: bytes) -> str:
    """The error's type, where the node is one of ours and the type is a plain word."""
    try:
        document: Any = json.loads(answer)
        kind = document["error"]["type"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    plain = isinstance(kind, str) and len(kind) <= 64 and kind.replace("_", "").isascii() and kind.isidentifier()
    return kind if plain else ""
