"""Logs to events: one Python function per event, generated from its declaration, working on the hex text of the log.

Padding is checked, lengths are bounded, integers are bounded by what a column can hold. A log that does not fit
raises DecodeError and goes to quarantine; it never stops a run. Text that is not UTF-8, or that holds NUL, is
cleaned by replacement; the raw bytes stay in the raw log.
"""

from collections.abc import Callable, Iterator, Mapping

from indexer.events import EVENTS, Abi, Argument, Event, arguments, topic0

MAX_TEXT_BYTES = 1024
"""Longest text of an event, in bytes; the contracts allow at most 280."""

UNKNOWN_EVENT = "unknown event"
"""The reason for the quarantine of a log of ours that nobody knows."""

_WORD = 64  # hex digits in a 32-byte word

Decoder = Callable[[tuple[str, ...], str], Event]
"""Reads an event from a log's topics and data, in the form in which `chain.Log` holds them."""


class DecodeError(ValueError):
    """A log does not have the form of its event; the message is the reason for the quarantine."""


def clean_text(raw: bytes) -> str:
    """Make text of any bytes: invalid UTF-8 and NUL become U+FFFD, so that every database can hold it."""
    return raw.decode("utf-8", errors="replace").replace("\x00", "\ufffd")


def read_bytes(text: str, at: int, head: int) -> bytes:
    """Read a dynamic byte string whose offset word stands at `at`; DecodeError when it does not fit.

    `head` is where the fixed arguments end and byte strings may begin; both are counted in digits.
    """
    offset = int(text[at : at + _WORD], 16) * 2
    if offset < head:
        raise DecodeError("a text starts among the fixed arguments")
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


# --- generating a decoder

_UINT = """
    {name} = int({text}[{start}:{end}], 16)
    if {name} >> {bits}:
        raise DecodeError("a number does not fit in {bits} bits")"""
_ADDRESS = """
    if {text}[{start}:{start}+24] != "000000000000000000000000":
        raise DecodeError("an address is not padded with zeros")
    {name} = "0x" + {text}[{start}+24:{end}]"""
_FLAG = """
    {name} = FLAGS.get({text}[{start}:{end}])
    if {name} is None:
        raise DecodeError("a bool is neither 0 nor 1")"""
_BYTES32 = """
    {name} = "0x" + {text}[{start}:{end}]"""
_STRING = """
    {name} = clean_text(read_bytes({text}[2:], {start} - 2, {head}))"""
_FUNCTION = """
def decode(topics, data):
    if len(topics) != {topic_count}:
        raise DecodeError("the log does not have {topic_count} topics")
    if len(data) < {shortest}:
        raise DecodeError("the data is shorter than the event's arguments"){reads}
    return Event({names})
"""
_READS = {"address": _ADDRESS, "bool": _FLAG, "bytes32": _BYTES32, "string": _STRING}
_FLAGS = {"0" * 64: False, "0" * 63 + "1": True}


def build_decoder(event: type[Event]) -> Decoder:
    """Build the decoder of one event from its declaration, which alone decides what code runs."""
    declared = arguments(event)
    head = _WORD * sum(not argument.abi.indexed for argument in declared)
    source = _FUNCTION.format(
        topic_count=1 + sum(argument.abi.indexed for argument in declared),
        shortest=2 + head,
        reads="".join(_reads(declared, head)),
        names=", ".join(argument.name for argument in declared),
    )
    known = {
        "Event": event, "DecodeError": DecodeError, "FLAGS": _FLAGS, "clean_text": clean_text, "read_bytes": read_bytes,
    }  # fmt: skip
    exec(source, known)  # noqa: S102 - made of the declarations in events.py and of nothing else
    decoder: Decoder = known["decode"]  # type: ignore[assignment]
    return decoder


def _reads(declared: tuple[Argument, ...], head: int) -> Iterator[str]:
    topics, words = 1, 0
    for argument in declared:
        if argument.abi.indexed:
            yield _read(argument.name, argument.abi, f"topics[{topics}]", 2, head)
            topics += 1
        else:
            yield _read(argument.name, argument.abi, "data", 2 + words * _WORD, head)
            words += 1


def _read(name: str, abi: Abi, text: str, start: int, head: int) -> str:
    template = _READS.get(abi.type, _UINT)
    return template.format(name=name, text=text, start=start, end=start + _WORD, bits=abi.bits, head=head)


DECODERS: Mapping[str, Mapping[str, Decoder]] = {
    contract: {topic0(event): build_decoder(event) for event in events} for contract, events in EVENTS.items()
}
"""Decoder by contract name and first topic."""


class LogDecoder:
    """Decoders by address and first topic, for one deployment."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """Take the lower-case address of each contract name."""
        self._decoders = {
            (address, topic): decoder
            for name, address in addresses.items()
            for topic, decoder in DECODERS[name].items()
        }

    def knows(self, address: str, topic: str) -> bool:
        """Tell whether a log of this address with this first topic is one of ours."""
        return (address, topic) in self._decoders

    def decode(self, address: str, topics: tuple[str, ...], data: str) -> Event:
        """Decode a log in the form of `chain.Log`; DecodeError with the reason when it is none of our events."""
        decoder = self._decoders.get((address, topics[0])) if topics else None
        if decoder is None:
            raise DecodeError(UNKNOWN_EVENT)
        try:
            return decoder(topics, data)
        except ValueError as error:
            raise DecodeError(f"undecodable: {error}") from None
