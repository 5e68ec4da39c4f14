"""What agent and node say to each other over HTTP: the voucher in four headers, so that the body is the service's own.

A call is named by its session and its number (`calls`); the digest of its request tells a retry from another request.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from eth_hash.auto import keccak

from counterfoil.node.vouchers import Voucher

SESSION: Final = "Counterfoil-Session"
AMOUNT: Final = "Counterfoil-Amount"
CALLS: Final = "Counterfoil-Calls"
SIGNATURE: Final = "Counterfoil-Signature"
REPLAYED: Final = "Counterfoil-Replayed"
"""`true` in the answer to a retry: the stored answer of a call that was charged before."""

CALL: Final = "/call"
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")

_SESSION = re.compile(r"0x[0-9a-f]{64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,38}")
_SIGNATURE = re.compile(r"0x[0-9a-f]{130}")


class MalformedError(ValueError):
    """A request that cannot be read; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An operator's signed word that a call was not served and charges nothing (EIP-712 `Failure`).

    `request` is the request's digest, `status` the HTTP status that the node answered with, `reason` a sentence;
    hashes, address and signature are 0x and lower-case digits.
    """

    session_id: str
    calls: int
    request: str
    status: int
    reason: str
    operator: str
    signature: str

    def document(self) -> dict[str, Any]:
        """The failure as JSON values."""
        return asdict(self)


def request_digest(method: str, target: str, body: bytes) -> str:
    """keccak256 of method, target and body: 0x and 64 lower-case digits.

    `target` is what follows `/call` as it is sent, with its `?` and query; "" for none.
    """
    return "0x" + keccak(f"{method} {target}\n".encode() + body).hex()


def read_voucher(headers: Mapping[str, str]) -> Voucher:
    """The voucher in a request's headers. Raises MalformedError, naming the header."""
    session_id = _matched(headers, SESSION, _SESSION)
    amount = int(_matched(headers, AMOUNT, _NUMBER))
    calls = int(_matched(headers, CALLS, _NUMBER))
    signature = bytes.fromhex(_matched(headers, SIGNATURE, _SIGNATURE)[2:])
    return Voucher(session_id, amount, calls, signature)


def voucher_headers(voucher: Voucher) -> dict[str, str]:
    """The headers that carry a voucher."""
    return {
        SESSION: voucher.session_id,
        AMOUNT: str(voucher.amount),
        CALLS: str(voucher.calls),
        SIGNATURE: "0x" + voucher.signature.hex(),
    }


def _matched(headers: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str:
    text = headers.get(name, "")
    if not pattern.fullmatch(text):
        raise MalformedError(f"the header {name} must match {pattern.pattern}")
    return text
