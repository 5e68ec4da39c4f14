"""Logs to events: one decoder per event, built from its declaration, working on the hex text of the log.

Padding is checked, lengths are bounded, integers are bounded by what a column can hold. A log that does not fit
raises DecodeError and goes to quarantine; it never stops a run. Text that is not UTF-8, or that holds NUL, is
cleaned by replacement; the raw bytes stay in the raw log.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from indexer.events import EVENTS, Abi, Argument, Event, arguments, topic0

MAX_TEXT_BYTES = 1024
"""Longest text of an event, in bytes; the contracts allow at most 280."""

_WORD = 64  # hex digits in a 32-byte word
_HEX = re.compile(r"0x[0-9a-f]*")
_TOPIC = re.compile(r"0x[0-9a-f]{64}")
_ADDRESS_PADDING = "0" * 24
_FLAGS = {"0" * 64: False, "0" * 63 + "1": True}

Reader = Callable[[str, int], int | str | bool]
"""Reads one value from hex text, its word at a position (in digits)."""
Decoder = Callable[[tuple[str, ...], str], Event]
"""Reads an event from a log's topics and data (lower-case hex with 0x)."""


class DecodeError(ValueError):
    """A log does not have the form of its event; the message is the reason for the quarantine."""


@dataclass(frozen=True, slots=True)
class _Field:
    read: Reader
    place: int
    """Position in the data, or of the topic, in digits resp. number."""
    indexed: bool


def clean_text(raw: bytes) -> str:
    """Make text of any bytes: invalid UTF-8 and NUL become U+FFFD, so that every database can hold it."""
    return raw.decode("utf-8", errors="replace").replace("\x00", "\ufffd")


def _uint_reader(bits: int) -> Reader:
    limit = 1 << bits

    def read(text: str, at: int) -> int:
        number = int(text[at : at + _WORD], 16)
        if number >= limit:
            raise DecodeError(f"a number does not fit in {bits} bits")
        return number

    return read


def _read_address(text: str, at: int) -> str:
    if text[at : at + 24] != _ADDRESS_PADDING:
        raise DecodeError("an address is not padded with zeros")
    return "0x" + text[at + 24 : at + _WORD]


def _read_flag(text: str, at: int) -> bool:
    flag = _FLAGS.get(text[at : at + _WORD])
    if flag is None:
        raise DecodeError("a bool is neither 0 nor 1")
    return flag


def _read_bytes32(text: str, at: int) -> str:
    return "0x" + text[at : at + _WORD]


def read_bytes(text: str, at: int) -> bytes:
    """Read a dynamic byte string whose offset word stands at `at`; DecodeError when it does not fit."""
    offset = int(text[at : at + _WORD], 16) * 2
    start = offset + _WORD
    if start > len(text):
        raise DecodeError("a text starts beyond the data")
    length = int(text[offset:start], 16)
    if length > MAX_TEXT_BYTES:
        raise DecodeError(f"a text is longer than {MAX_TEXT_BYTES} bytes")
    end = start + length * 2
    padded = start + -(-length // 32) * _WORD
    if padded > len(text):
        raise DecodeError("a text ends beyond the data")
    if text[end:padded].strip("0"):
        raise DecodeError("a text is not padded with zeros")
    return bytes.fromhex(text[start:end])


def _read_text(text: str, at: int) -> str:
    return clean_text(read_bytes(text, at))


_READERS: dict[str, Reader] = {
    "address": _read_address, "bool": _read_flag, "bytes32": _read_bytes32, "string": _read_text,
}  # fmt: skip


def _reader(abi: Abi) -> Reader:
    return _READERS.get(abi.type) or _uint_reader(abi.bits)


def _fields(declared: tuple[Argument, ...]) -> tuple[_Field, ...]:
    topics, words = 1, 0
    laid_out = []
    for argument in declared:
        if argument.abi.indexed:
            laid_out.append(_Field(_reader(argument.abi), topics, indexed=True))
            topics += 1
        else:
            laid_out.append(_Field(_reader(argument.abi), words * _WORD, indexed=False))
            words += 1
    return tuple(laid_out)


def build_decoder(event: type[Event]) -> Decoder:
    """Build the decoder of one event from its declaration."""
    layout = [(field.read, field.place, field.indexed) for field in _fields(arguments(event))]
    topic_count = 1 + sum(indexed for _, _, indexed in layout)
    head = (len(layout) + 1 - topic_count) * _WORD

    def decode(topics: tuple[str, ...], data: str) -> Event:
        if len(topics) != topic_count or not all(map(_TOPIC.fullmatch, topics)):
            raise DecodeError(f"the log does not have {topic_count} topics of 32 bytes")
        if len(data) % 2 or _HEX.fullmatch(data) is None:
            raise DecodeError("the data is not lower-case hex")
        body = data[2:]
        if len(body) < head:
            raise DecodeError("the data is shorter than the event's arguments")
        return event(*[read(topics[place], 2) if indexed else read(body, place) for read, place, indexed in layout])

    return decode


DECODERS: Mapping[str, Mapping[str, Decoder]] = {
    contract: {topic0(event): build_decoder(event) for event in events} for contract, events in EVENTS.items()
}
"""Decoder by contract name and first topic."""


class LogDecoder:
    """Decoders by address and first topic, for one deployment."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """Take the lower-case address of each contract name."""
        self._decoders = {address: DECODERS[name] for name, address in addresses.items()}

    def knows(self, address: str, topic: str) -> bool:
        """Tell whether a log of this address with this first topic is one of ours."""
        return topic in self._decoders.get(address, ())

    def decode(self, address: str, topics: tuple[str, ...], data: str) -> Event:
        """Decode a log for which `knows` is true; DecodeError with the reason when it does not fit."""
        return self._decoders[address][topics[0]](topics, data)
