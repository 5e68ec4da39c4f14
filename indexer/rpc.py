"""Asking a node: a thin JSON-RPC client that bounds every answer and sorts every error. Messages hold no secrets."""

import itertools
import time
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Protocol

import orjson

from indexer.errors import (
    BadAnswerError,
    NoHistoryError,
    RangeTooLargeError,
    RateLimitedError,
    RetryableError,
    UnavailableError,
    UnsupportedError,
)
from indexer.http import BoundedHttp, HttpAnswer, HttpError, TooLargeError, without_secrets
from indexer.refusals import classify, usable_blocks

Call = tuple[str, Sequence[object]]
"""A method and its parameters."""

CALLS_A_BATCH = 100
MAX_WAIT = 300
"""Longest pause, in seconds, that a node may ask for with Retry-After."""
_MAX_MESSAGE = 200
_HEADERS = {"Content-Type": "application/json"}
_KINDS: dict[str, type[RetryableError]] = {
    "rate": RateLimitedError,
    "range": RangeTooLargeError,
    "history": NoHistoryError,
    "unsupported": UnsupportedError,
    "other": BadAnswerError,
}

_BY_STATUS: dict[int, type[RetryableError]] = {429: RateLimitedError, 413: RangeTooLargeError}


class Rpc(Protocol):
    """What the indexer needs of a node. Every failure is a RetryableError."""

    where: str
    """The node's name, without secrets."""
    received: int
    """Bytes of its answers so far."""

    def call(self, method: str, params: Sequence[object]) -> object:
        """Give the result of one call."""

    def batch(self, calls: Sequence[Call]) -> list[object]:
        """Give the results of several calls, in their order."""


class _BatchRefusedError(BadAnswerError):
    """The node takes no batch of this size."""


class HttpRpc:
    """JSON-RPC over HTTP. `seconds` bounds one request as a whole, `max_bytes` its answer (see `BoundedHttp`)."""

    def __init__(self, url: str, *, seconds: float = 30, max_bytes: int = 64 * 2**20) -> None:
        self.url = url
        self.seconds = seconds
        self.max_bytes = max_bytes
        self._ids = itertools.count(1)
        self._calls_a_batch = CALLS_A_BATCH
        self.where = without_secrets(url)
        self.received = 0
        self._http = BoundedHttp(seconds=seconds, max_bytes=max_bytes)

    def call(self, method: str, params: Sequence[object]) -> object:
        """Give the result of one call."""
        identifier, request = self._request(method, params)
        return self._result(self._post(request), identifier)

    def batch(self, calls: Sequence[Call]) -> list[object]:
        """Give the results of several calls, in their order; at most CALLS_A_BATCH go in one request.

        A node that refuses the size of a batch gets smaller ones from then on, down to single calls.
        """
        results: list[object] = []
        while len(results) < len(calls):
            size = self._calls_a_batch
            some = calls[len(results) : len(results) + size]
            try:
                results += [self.call(*some[0])] if size == 1 else self._one_batch(some)
            except _BatchRefusedError:
                if size == 1:
                    raise
                self._calls_a_batch = max(1, size // 3)
        return results

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> "HttpRpc":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(self, method: str, params: Sequence[object]) -> tuple[int, dict[str, object]]:
        identifier = next(self._ids)
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
        answer = self._send(orjson.dumps(body))
        self.received += len(answer.body)
        self._check_status(answer)
        try:
            return orjson.loads(answer.body)
        except ValueError:
            raise BadAnswerError(f"{self.where} did not answer with JSON; is it an RPC address?") from None

    def _send(self, content: bytes) -> HttpAnswer:
        try:
            return self._http.request("POST", self.url, content=content, headers=_HEADERS)
        except TooLargeError:
            raise RangeTooLargeError(
                f"{self.where} answered with over {self._http.max_bytes} bytes; asking for less. If a single block is "
                "larger, raise COUNTERFOIL_MAX_RESPONSE_BYTES."
            ) from None
        except HttpError as error:
            raise UnavailableError(f"{self.where} does not answer ({error}); is the node running?") from None

    def _check_status(self, answer: HttpAnswer) -> None:
        if answer.status < 300 or (answer.status != 429 and b'"error"' in answer.body[:4096]):
            return
        error = _BY_STATUS.get(answer.status, UnavailableError)(
            f"{self.where} answered with HTTP status {answer.status}; check the RPC address if this goes on."
        )
        error.wait = wait_of(answer.retry_after)
        raise error

    def _result(self, answer: object, identifier: int) -> object:
        if not isinstance(answer, dict):
            raise BadAnswerError(f"{self.where} left a call without an answer; try another RPC address.")
        if answer.get("error") is not None:
            raise self._error(answer["error"])
        if answer.get("id") != identifier or not _is_id(answer.get("id")) or "result" not in answer:
            raise BadAnswerError(f"{self.where} answered another call than was asked; try another RPC address.")
        return answer["result"]

    def _error(self, given: object) -> RetryableError:
        fields = given if isinstance(given, dict) else {"message": given}
        texts = [text[:2048] for name in ("message", "data") if isinstance(text := fields.get(name), str)]
        message = ": ".join(texts) or "no reason given"
        known = _KINDS[classify(fields.get("code"), message)]
        kind = _BatchRefusedError if "batch" in message.lower() else known
        error = kind(f"{self.where} refused a call: {_printable(message.replace(self.url, self.where))}.")
        if isinstance(error, RangeTooLargeError):
            error.blocks = usable_blocks(message)
        return error


def wait_of(retry_after: str) -> float:
    """Read the header Retry-After, seconds or an HTTP date; gives seconds from 0 to MAX_WAIT."""
    text = retry_after.strip()[:64]
    if text.isascii() and text.isdigit():
        return min(MAX_WAIT, int(text))
    try:
        moment = parsedate_to_datetime(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return 0
    return max(0, min(MAX_WAIT, seconds))


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _printable(message: str) -> str:
    return "".join(char if char.isprintable() else " " for char in message[:_MAX_MESSAGE]).strip(" .")
