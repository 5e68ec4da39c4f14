"""A web3 provider over HTTP that never waits without end and never reads an answer without end."""

import time
from typing import Any
from urllib.parse import urlsplit

import httpx
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from counterfoil.chain.errors import ChainError, NoAnswerError


class BoundedProvider(JSONBaseProvider):
    """Ask `url`; `seconds` bounds an answer's time, `max_bytes` its size. Raises ChainError."""

    # A contract's answer must not make us fetch an address of its choice (EIP-3668).
    global_ccip_read_enabled = False

    def __init__(self, url: str, *, seconds: float = 30, max_bytes: int = 64 * 2**20) -> None:
        super().__init__()
        self.endpoint = url
        self.shown = _without_secrets(url)
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._client = httpx.Client(timeout=seconds, headers={"Content-Type": "application/json"})

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:  # noqa: ANN401
        """Ask once. An error the RPC itself reports is in the answer, as web3 wants it."""
        body = self._post(self.encode_rpc_request(method, params))
        try:
            answer = self.decode_rpc_response(body)
        except (ValueError, RecursionError) as error:
            raise ChainError(self._says("an answer that is not JSON")) from error
        if not isinstance(answer, dict) or ("result" not in answer and "error" not in answer):
            raise ChainError(self._says("an answer that is no JSON-RPC"))
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _post(self, content: bytes) -> bytes:
        try:
            with self._client.stream("POST", self.endpoint, content=content) as response:
                body = self._read(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NoAnswerError(
                f"The RPC at {self.shown} does not answer ({type(error).__name__}): "
                "start the chain, or name another with --rpc or COUNTERFOIL_RPC_URL."
            ) from error
        # JSON-RPC errors may come with any status; anything else is no answer.
        if response.status_code >= 400 and not body.lstrip().startswith(b"{"):
            raise ChainError(self._says(f"HTTP status {response.status_code}"))
        return body

    def _read(self, response: httpx.Response) -> bytes:
        # httpx bounds each read only: an RPC that sends a byte now and then would hold us for ever.
        deadline = time.monotonic() + self._seconds
        body = bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > self._max_bytes:
                raise ChainError(self._says(f"more than {self._max_bytes} bytes"))
            if time.monotonic() > deadline:
                raise NoAnswerError(self._says(f"no whole answer in {self._seconds:g} s"))
        return bytes(body)

    def _says(self, what: str) -> str:
        return f"The RPC at {self.shown} gave {what}: name another with --rpc or COUNTERFOIL_RPC_URL."


def _without_secrets(url: str) -> str:
    # Keys of hosted RPCs stand in the path, the query or before the @.
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}"
