"""A web3 provider over HTTP that never waits without end and never reads an answer without end."""

from typing import Any, Final

from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from counterfoil.chain.errors import ChainError, NoAnswerError
from indexer.http import (
    BoundedHttp,
    EncodedError,
    HttpAnswer,
    HttpError,
    OutOfTimeError,
    TooLargeError,
    without_secrets,
)

_HEADERS: Final = {"Content-Type": "application/json"}


class BoundedProvider(JSONBaseProvider):
    """Ask `url`, within `seconds` and `max_bytes` for each request (see `BoundedHttp`). Raises ChainError."""

    # A contract's answer must not make us fetch an address of its choice (EIP-3668).
    global_ccip_read_enabled = False

    def __init__(self, url: str, *, seconds: float = 30, max_bytes: int = 64 * 2**20) -> None:
        super().__init__()
        self.endpoint = url
        self.shown = without_secrets(url)
        self._http = BoundedHttp(seconds=seconds, max_bytes=max_bytes)

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
        self._http.close()

    def _post(self, content: bytes) -> bytes:
        answer = self._send(content)
        # JSON-RPC errors may come with any status; anything else is no answer.
        if answer.status >= 400 and not answer.body.lstrip().startswith(b"{"):
            raise ChainError(self._says(f"HTTP status {answer.status}"))
        return answer.body

    def _send(self, content: bytes) -> HttpAnswer:
        try:
            return self._http.request("POST", self.endpoint, content=content, headers=_HEADERS)
        except TooLargeError as error:
            raise ChainError(self._says(f"more than {self._http.max_bytes} bytes")) from error
        except EncodedError as error:
            raise ChainError(self._says("a compressed answer, which was not asked for")) from error
        except OutOfTimeError as error:
            raise NoAnswerError(self._says(str(error))) from error
        except HttpError as error:
            raise NoAnswerError(
                f"The RPC at {self.shown} does not answer ({error}): "
                "start the chain, or name another with --rpc or COUNTERFOIL_RPC_URL."
            ) from error

    def _says(self, what: str) -> str:
        return f"The RPC at {self.shown} gave {what}: name another with --rpc or COUNTERFOIL_RPC_URL."
