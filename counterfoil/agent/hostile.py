"""Reading what a service answered, which may be anything: bounded JSON, event streams, words made harmless. Pure."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NoReturn

from counterfoil.nesting import nests_deeper
from counterfoil.texts import printable

MAX_BYTES: Final = 2**20
MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 80  # of one number: a uint256 has 78
MAX_EVENTS: Final = 10_000
MAX_SENTENCE: Final = 160  # bytes, as the message of an experience record

_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class AnswerError(Exception):
    """An answer that is none: an error, cut or malformed. The message is a sentence of at most MAX_SENTENCE bytes."""

    def __init__(self, sentence: str) -> None:
        super().__init__(harmless(sentence))


def harmless(text: str) -> str:
    """The text on one line, what cannot be printed replaced, cut to MAX_SENTENCE bytes of UTF-8."""
    line = " ".join(text.split())
    return printable(line).encode()[:MAX_SENTENCE].decode(errors="ignore")


def read_json(data: bytes) -> object:
    """Decode JSON as RFC 8259 has it: UTF-8, no field twice, numbers that are finite and of at most MAX_DIGITS digits.

    Raises AnswerError, also for more than MAX_BYTES bytes and more than MAX_DEPTH levels.
    """
    if len(data) > MAX_BYTES:
        raise AnswerError(f"the answer is over {MAX_BYTES} bytes")
    if nests_deeper(data, MAX_DEPTH):
        raise AnswerError(f"the answer is nested deeper than {MAX_DEPTH} levels")
    try:
        found: object = json.loads(
            data.decode(),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_refuse_number,
        )
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise AnswerError("the answer is not UTF-8 text") from None
    except UnicodeEncodeError:
        raise AnswerError("the answer holds half a character (a lone surrogate)") from None
    except json.JSONDecodeError:
        raise AnswerError("the answer is cut or no JSON") from None
    return found


def read_events(body: bytes) -> Iterator[bytes]:
    """The data of each server-sent event that has any; lines end with CR, LF or both.

    An event without a blank line after it counts: whether it is whole, its own JSON says.
    Raises AnswerError for more than MAX_BYTES bytes or MAX_EVENTS events.
    """
    if len(body) > MAX_BYTES:
        raise AnswerError(f"the answer is over {MAX_BYTES} bytes")
    for count, data in enumerate(_events(body.removeprefix(_BYTE_ORDER_MARK))):
        if count == MAX_EVENTS:
            raise AnswerError(f"the stream has more than {MAX_EVENTS} events")
        yield data


def _events(body: bytes) -> Iterator[bytes]:
    lines: list[bytes] = []
    for line in (*_LINE_ENDS.split(body), b""):
        name, _, value = line.partition(b":")
        if name == b"data":
            lines.append(value.removeprefix(b" "))
        elif not line:
            if any(lines):
                yield b"\n".join(lines)
            lines = []


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise AnswerError(f"the answer has the field {twice!r} twice")
    return found


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        _refuse_number(text)
    return int(text)


def _fraction(text: str) -> float:
    number = float(text)
    if len(text) > MAX_DIGITS or not math.isfinite(number):
        _refuse_number(text)
    return number


def _refuse_number(text: str) -> NoReturn:
    raise AnswerError(f"the answer holds {text[:MAX_DIGITS]}, which is no number that can be kept")
