"""Asking a node: a thin JSON-RPC client that bounds every answer and sorts every error. Messages hold no secrets."""

import json
import re
from collections.abc import Sequence
from typing import Literal, Protocol

from indexer.errors import (
    BadAnswerError,
    RangeTooLargeError,
    RateLimitedError,
    RetryableError,
    UnavailableError,
)
from indexer.http import BoundedHttp, HttpAnswer, HttpError, TooLargeError, without_secrets

Call = tuple[str, Sequence[object]]
"""A method and its parameters."""

CALLS_A_BATCH = 100
_MAX_MESSAGE = 200
_HEADERS = {"Content-Type": "application/json"}
_RATE = re.compile(
    r"\brate\b|too many requests|throttl|capacity|quota|requests? per|compute units|slow down|429",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"\brange\b|too many (results|blocks|logs)|too (large|big|wide)|more than \d+ (results|logs|blocks)|"
    r"response size|size exceeded|max results|limited to|up to (a )?\d+ blocks|block limit|query timeout",
    re.IGNORECASE,
)


class Rpc(Protocol):
    """What the indexer needs of a node. Every failure is a RetryableError."""

    def call(self, method: str, params: Sequence[object]) -> object:
        """Give the result of one call."""

    def batch(self, calls: Sequence[Call]) -> list[object]:
        """Give the results of several calls, in their order."""


def classify(code: object, message: str) -> Literal["rate", "range", "other"]:
    """Sort a node's error: by its words, since -32005 means range, result count or rate, depending on who sends it."""
    if code == 429 or _RATE.search(message):
        return "rate"
    return "range" if _RANGE.search(message) else "other"


class HttpRpc:
    """JSON-RPC over HTTP. `seconds` bounds one request as a whole, `max_bytes` its answer (see `BoundedHttp`)."""

    def __init__(self, url: str, *, seconds: float = 30, max_bytes: int = 64 * 2**20) -> None:
        self._url = url
        self._next_id = 1
        self.where = without_secrets(url)
        self._http = BoundedHttp(seconds=seconds, max_bytes=max_bytes)

    def call(self, method: str, params: Sequence[object]) -> object:
        """Give the result of one call."""
        identifier, request = self._request(method, params)
        return self._result(self._post(request), identifier)

    def batch(self, calls: Sequence[Call]) -> list[object]:
        """Give the results of several calls, in their order; CALLS_A_BATCH go in one request."""
        results: list[object] = []
        for at in range(0, len(calls), CALLS_A_BATCH):
            results += self._one_batch(calls[at : at + CALLS_A_BATCH])
        return results

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> "HttpRpc":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, method: str, params: Sequence[object]) -> tuple[int, dict[str, object]]:
        identifier = self._next_id
        self._next_id += 1
        return identifier, {"jsonrpc": "2.0", "id": identifier, "method": method, "params": list(params)}

    def _one_batch(self, calls: Sequence[Call]) -> list[object]:
        requests = [self._request(method, params) for method, params in calls]
        answer = self._post([request for _, request in requests])
        if isinstance(answer, dict):
            return [self._result(answer, 0)]  # an error for the whole batch
        if not isinstance(answer, list) or len(answer) != len(requests):
            raise BadAnswerError(f"{self.where} did not answer every call of a batch; try another RPC address.")
        by_id = {item.get("id"): item for item in answer if isinstance(item, dict) and _is_id(item.get("id"))}
        return [self._result(by_id.get(identifier), identifier) for identifier, _ in requests]

    def _post(self, body: object) -> object:
        answer = self._send(json.dumps(body).encode())
        self._check_status(answer.status, answer.body)
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            raise BadAnswerError(f"{self.where} did not answer with JSON; is it an RPC address?") from None

    def _send(self, content: bytes) -> HttpAnswer:
        try:
            return self._http.request("POST", self._url, content=content, headers=_HEADERS)
        except TooLargeError:
            raise RangeTooLargeError(
                f"{self.where} answered with over {self._http.max_bytes} bytes; asking for less."
            ) from None
        except HttpError as error:
            raise UnavailableError(f"{self.where} does not answer ({error}); is the node running?") from None

    def _check_status(self, status: int, raw: bytes) -> None:
        if status == 429:
            raise RateLimitedError(f"{self.where} asks for fewer requests; waiting.")
        if status >= 300 and b'"error"' not in raw[:4096]:
            raise UnavailableError(f"{self.where} answered with HTTP status {status}; check the RPC address.")

    def _result(self, answer: object, identifier: int) -> object:
        if not isinstance(answer, dict):
            raise BadAnswerError(f"{self.where} left a call without an answer; try another RPC address.")
        if answer.get("error") is not None:
            raise self._error(answer["error"])
        if answer.get("id") != identifier or not _is_id(answer.get("id")) or "result" not in answer:
            raise BadAnswerError(f"{self.where} answered another call than was asked; try another RPC address.")
        return answer["result"]

    def _error(self, error: object) -> RetryableError:
        fields = error if isinstance(error, dict) else {"message": str(error)}
        message = str(fields.get("message", ""))[:4096]
        kinds = {"rate": RateLimitedError, "range": RangeTooLargeError, "other": BadAnswerError}
        shown = _printable(message.replace(self._url, self.where))
        return kinds[classify(fields.get("code"), message)](f"{self.where} refused a call: {shown}.")


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _printable(message: str) -> str:
    return "".join(char if char.isprintable() else " " for char in message[:_MAX_MESSAGE]).strip(" .")
