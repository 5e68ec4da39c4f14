"""Reading a receipt that may be hostile: bounded, strict, and believed only where its inputs bear it out."""

import json
import re
from typing import Any, Final, NoReturn

from counterfoil.nesting import nests_deeper
from counterfoil.receipts.canonical import MAX_BYTES, canonical, digest_of, document
from counterfoil.receipts.model import (
    MAX_CANDIDATES,
    SAFE_INTEGER,
    Policy,
    Receipt,
    ReceiptError,
    Request,
    Skipped,
    build,
)
from counterfoil.routing.lottery import Candidate, LotteryError

_AMOUNT: Final = re.compile(r"0|[1-9][0-9]{0,77}")
_MAX_DEPTH: Final = 8
_MAX_DIGITS: Final = 16
_SHOWN: Final = 80


def verify(data: bytes, digest: str) -> Receipt:
    """Read a receipt and check that `digest` (0x and 64 digits) is its own. Raises ReceiptError if not."""
    found = digest_of(data)
    if found != digest.lower():
        raise ReceiptError(
            f"these bytes have the digest {found}, not {digest[:_SHOWN]}: the receipt was changed, cut, or is another's"
        )
    return parse(data)


def parse(data: bytes) -> Receipt:
    """Read a receipt: canonical JSON, exactly its fields, and every result equal to what its inputs give.

    Raises ReceiptError, with the first part that is wrong.
    """
    if len(data) > MAX_BYTES:
        raise ReceiptError(f"a receipt is at most {MAX_BYTES} bytes, not {len(data)}")
    receipt = from_document(_load(data))
    if canonical(receipt) != data:
        raise ReceiptError("the receipt is not in canonical form (RFC 8785): names out of order, or spare blanks")
    return receipt


def from_document(found: object) -> Receipt:
    """Read a receipt that is JSON values already: exactly its fields, and every result as its inputs give it.

    Raises ReceiptError, with the first part that is wrong.
    """
    receipt = _read(found)
    _compare("", document(receipt), found)
    return receipt


def _load(data: bytes) -> object:
    if nests_deeper(data, _MAX_DEPTH):
        raise ReceiptError("the receipt is nested too deeply to be one")
    try:
        return json.loads(
            data.decode("utf-8"),
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
            parse_int=_integer,
        )
    except UnicodeDecodeError as error:
        raise ReceiptError(f"the receipt is not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise ReceiptError("the receipt is cut or not JSON") from error


def _refuse_number(text: str) -> NoReturn:
    raise ReceiptError(f"the number {text[:_SHOWN]} is not an integer; receipts hold no fractions")


def _integer(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ReceiptError(f"the number {text[:_SHOWN]} is too long; large amounts are decimal strings")
    return int(text)


def _read(found: object) -> Receipt:
    snapshot = _object(found, "snapshot")
    return build(
        chain_id=_number(found, "chain_id"),
        contracts=_texts(_object(found, "contracts"), "contracts"),
        snapshot_block=_number(snapshot, "block", "snapshot"),
        snapshot_hash=_text(snapshot, "hash", "snapshot"),
        request=_read_request(_object(found, "request")),
        candidates=[_read_candidate(entry) for entry in _list(found, "candidates")],
        attempt=_number(found, "attempt"),
        skipped=[_read_skipped(entry) for entry in _list(found, "skipped")],
        previous=None if _field(found, "previous") is None else _text(found, "previous"),
    )


def _read_request(found: dict[str, Any]) -> Request:
    policy = _text(found, "policy", "request")
    if policy not in Policy.__members__:
        raise ReceiptError(f"request.policy {policy[:_SHOWN]!r} has no receipt that this version can replay")
    return Request(
        category=_text(found, "category", "request"),
        client=_text(found, "client", "request"),
        nonce=_number(found, "nonce", "request"),
        price_cap=_optional_amount(found, "price_cap", "request"),
        policy=Policy[policy],
        pinned=None if _field(found, "pinned", "request") is None else _number(found, "pinned", "request"),
        found_by=_text(found, "found_by", "request") if "found_by" in found else None,
    )


def _read_candidate(found: object) -> Candidate:
    service_id = _number(found, "service_id", "candidate")
    where = f"candidate {service_id}"
    try:
        return Candidate(
            service_id=service_id,
            price=_amount(found, "price", where),
            stake=_amount(found, "stake", where),
            rating_sum=_number(found, "rating_sum", where),
            rating_count=_number(found, "rating_count", where),
            active_sessions=_number(found, "active_sessions", where),
            max_concurrent=_amount(found, "max_concurrent", where),
        )
    except LotteryError as error:
        raise ReceiptError(str(error)) from error


def _read_skipped(found: object) -> Skipped:
    return Skipped(_number(found, "service_id", "skipped"), _text(found, "reason", "skipped"))


def _field(found: object, name: str, where: str = "the receipt") -> object:
    if not isinstance(found, dict):
        raise ReceiptError(f"{where} is not a JSON object")
    if name not in found:
        raise ReceiptError(f"{where} lacks the field {name}")
    return found[name]


def _object(found: object, name: str) -> dict[str, Any]:
    part = _field(found, name)
    if not isinstance(part, dict):
        raise ReceiptError(f"{name} is not a JSON object")
    return part


def _list(found: object, name: str) -> list[Any]:
    part = _field(found, name)
    if not isinstance(part, list) or len(part) > MAX_CANDIDATES:
        raise ReceiptError(f"{name} is not a list of at most {MAX_CANDIDATES} entries")
    return part


def _number(found: object, name: str, where: str = "the receipt") -> int:
    part = _field(found, name, where)
    if type(part) is not int or not 0 <= part < SAFE_INTEGER:
        raise ReceiptError(f"{where}: {name} is not an integer from 0 to 2**53 - 1")
    return part


def _text(found: object, name: str, where: str = "the receipt") -> str:
    part = _field(found, name, where)
    if not isinstance(part, str):
        raise ReceiptError(f"{where}: {name} is not a string")
    return part


def _texts(found: dict[str, Any], where: str) -> dict[str, str]:
    return {name: _text(found, name, where) for name in found}


def _amount(found: object, name: str, where: str) -> int:
    text = _text(found, name, where)
    if not _AMOUNT.fullmatch(text):
        raise ReceiptError(f"{where}: {name} is not a whole amount as a decimal string")
    return int(text)


def _optional_amount(found: object, name: str, where: str) -> int | None:
    return None if _field(found, name, where) is None else _amount(found, name, where)


def _compare(where: str, expected: object, found: object) -> None:
    """Find the first part of `found` that differs from what the inputs give; types count: 1 is not true."""
    if isinstance(expected, dict) and isinstance(found, dict):
        _compare_objects(where, expected, found)
    elif isinstance(expected, list) and isinstance(found, list):
        _compare_lists(where, expected, found)
    elif type(expected) is not type(found) or expected != found:
        raise ReceiptError(_differs(where, expected, found))


def _compare_objects(where: str, expected: dict[str, Any], found: dict[str, Any]) -> None:
    for name in sorted(expected.keys() | found.keys()):
        path = f"{where}.{name}" if where else name
        if name not in expected:
            raise ReceiptError(f"{path[:_SHOWN]} is no field of this receipt")
        if name not in found:
            raise ReceiptError(f"{path} is missing; the receipt's own inputs give {_say(expected[name])}")
        _compare(path, expected[name], found[name])


def _compare_lists(where: str, expected: list[Any], found: list[Any]) -> None:
    for position, (one, other) in enumerate(zip(expected, found, strict=False)):
        _compare(f"{where}[{position}]", one, other)
    if len(expected) != len(found):
        raise ReceiptError(f"{where} has {len(found)} entries; the receipt's own inputs give {len(expected)}")


def _differs(where: str, expected: object, found: object) -> str:
    return f"{where} is {_say(found)}; the receipt's own inputs give {_say(expected)}"


def _say(part: object) -> str:
    return json.dumps(part)[:_SHOWN]
