"""An agent's calls to one node: bounded in size and time, never redirected."""

import time
from dataclasses import dataclass
from typing import Any

import httpx

from counterfoil.agent.endpoint import EndpointError, resolve
from counterfoil.node.server import voucher_headers
from counterfoil.node.vouchers import Voucher

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
    """One node's endpoint; `seconds` bounds each request as a whole."""

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
        try:
            target = resolve(self.endpoint, allow_private=self.allow_private)
            with (
                httpx.Client(timeout=self.seconds, follow_redirects=False, trust_env=False) as client,
                client.stream(
                    method,
                    target.url + path,
                    content=body,
                    headers={**headers, "Host": target.host},
                    extensions={"sni_hostname": target.name},
                ) as response,
            ):
                answer = self._read(response)
        except EndpointError as error:
            raise NodeError(str(error)) from error
        except httpx.TimeoutException as error:
            raise NodeError(f"no answer within {self.seconds:g} s") from error
        except httpx.HTTPError as error:
            raise NodeError("the connection failed") from error
        if response.status_code != 200:
            raise NodeRefusedError(response.status_code, _kind(response, answer))
        return answer

    def _read(self, response: httpx.Response) -> bytes:
        deadline = time.monotonic() + self.seconds
        answer = bytearray()
        for chunk in response.iter_bytes():
            answer += chunk
            if len(answer) > MAX_ANSWER:
                raise NodeError(f"the answer is over {MAX_ANSWER} bytes")
            if time.monotonic() > deadline:
                raise NodeError(f"no whole answer within {self.seconds:g} s")
        return bytes(answer)


def _kind(response: httpx.Response, answer: bytes) -> str:
    """The error's type, where the node is one of ours and the type is a plain word."""
    try:
        document: Any = httpx.Response(response.status_code, content=answer).json()
        kind = document["error"]["type"]
    except (ValueError, KeyError, TypeError):
        return ""
    plain = isinstance(kind, str) and len(kind) <= 64 and kind.replace("_", "").isascii() and kind.isidentifier()
    return kind if plain else ""
