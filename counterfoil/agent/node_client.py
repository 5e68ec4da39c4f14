"""An agent's calls to one node: bounded in size and time, never redirected, asked again where that costs nothing."""

import json
import time
from dataclasses import dataclass
from typing import Any, Final

from counterfoil.agent.endpoint import EndpointError, resolve
from counterfoil.agent.forms import CallAnswer, CallRequest
from counterfoil.agent.hostile import MAX_BYTES
from counterfoil.node.vouchers import Refusal, Voucher
from counterfoil.node.wire import voucher_headers
from indexer.http import BoundedHttp, EncodedError, HttpAnswer, HttpError, OutOfTimeError, TooLargeError

MAX_ANSWER: Final = MAX_BYTES
TRIES: Final = 3
"""How often a call is sent: its voucher is the same each time, and the node charges it once."""
WAIT_SECONDS: Final = 1
WAITS: Final = 30
_LATER: Final = frozenset({Refusal.BUSY, Refusal.UNCONFIRMED, Refusal.OVERLOADED, "chain_unavailable"})
"""What passes: among it a chain that the node cannot reach, since perhaps nobody can."""


class NodeError(Exception):
    """A node that gave no usable answer; the message is a sentence for the receipt."""


class UnreachedError(NodeError):
    """No connection: it may be the node's fault, or that of one's own network."""


class NodeRefusedError(NodeError):
    """A node that answered with an error of its own; `kind` is its type, "" where it gave none."""

    def __init__(self, status: int, kind: str) -> None:
        super().__init__(f"the node answered {status} {kind}".rstrip())
        self.status = status
        self.kind = kind


@dataclass(frozen=True, slots=True)
class NodeClient:
    """One node's endpoint; `http` bounds each request as a whole."""

    endpoint: str
    http: BoundedHttp
    allow_private: bool = False

    def probe(self) -> None:
        """Ask whether the node answers. Raises NodeError when it does not."""
        self._request("GET", "/health", {}, b"")

    def call(self, voucher: Voucher, request: CallRequest) -> CallAnswer:
        """Make one paid call: again after a lost answer, and later where the node says so."""
        headers = {**request.headers, **voucher_headers(voucher)}
        tries = waits = 0
        while True:
            try:
                answer = self._request(request.method, f"/call{request.path}", headers, request.body)
                return CallAnswer(answer.status, answer.content_type, answer.body)
            except NodeRefusedError as error:
                waits += 1
                if error.kind not in _LATER or waits > WAITS:
                    raise
                time.sleep(WAIT_SECONDS)
            except UnreachedError:
                tries += 1
                if tries >= TRIES:
                    raise

    def settle(self, last: Voucher) -> None:
        """Ask the node to settle at the last voucher."""
        self._request("POST", "/settle", voucher_headers(last), b"")

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        answer = self._send(method, path, headers, body)
        if not 200 <= answer.status < 300:
            raise NodeRefusedError(answer.status, _kind(answer.body))
        return answer

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        try:
            target = resolve(self.endpoint, allow_private=self.allow_private)
            sent = {**headers, "Host": target.host}
            return self.http.request(method, target.url + path, content=body, headers=sent, server_name=target.name)
        except (EndpointError, OutOfTimeError, TooLargeError, EncodedError) as error:
            raise NodeError(str(error)) from error
        except HttpError as error:
            raise UnreachedError("the connection failed") from error


def _kind(answer: bytes) -> str:
    """The error's type, where the node is one of ours and the type is a plain word."""
    try:
        document: Any = json.loads(answer)
        kind = document["error"]["type"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    plain = isinstance(kind, str) and len(kind) <= 64 and kind.replace("_", "").isascii() and kind.isidentifier()
    return kind if plain else ""
