"""Decoders against eth_abi, and against logs that do not have their form."""

import pytest
from eth_abi import decode as abi_decode
from eth_abi import encode as abi_encode
from eth_abi.exceptions import DecodingError
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer import events as ev
from indexer.decode import MAX_TEXT_BYTES, DecodeError, LogDecoder, build_decoder, clean_text, read_bytes
from tests.indexer.model import ADDRESSES, CONTRACT_OF, encoded, listed, opened

ALL = [event for events in ev.EVENTS.values() for event in events]


def values(abi):
    bits = abi.bits
    return {
        "address": st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()),
        "bool": st.booleans(),
        "bytes32": st.binary(min_size=32, max_size=32).map(lambda raw: "0x" + raw.hex()),
        "string": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=300),
    }.get(abi.type, st.integers(0, 2**bits - 1) | st.sampled_from([0, 1, 2**bits - 1]))


@st.composite
def any_event(draw):
    kind = draw(st.sampled_from(ALL))
    return kind(*[draw(values(argument.abi)) for argument in ev.arguments(kind)])


@given(any_event())
@settings(max_examples=400, deadline=None)
def test_decoder__of_what_eth_abi_encodes__gives_the_event_back(event):
    topics, data = encoded(event)
    assert build_decoder(type(event))(tuple(topics), data) == event


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_decoder__of_damaged_data__agrees_with_eth_abi_or_refuses(data):
    """Flip a byte anywhere: what eth_abi refuses we refuse, and what we accept has eth_abi's values."""
    event = data.draw(any_event().filter(lambda event: encoded(event)[1] != "0x"))
    topics, hex_data = encoded(event)
    raw = bytearray.fromhex(hex_data[2:])
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    plain = [argument for argument in ev.arguments(type(event)) if not argument.abi.indexed]
    types = ["bytes" if argument.abi.type == "string" else argument.abi.type for argument in plain]
    try:
        expected = abi_decode(types, bytes(raw))
    except (DecodingError, OverflowError):
        expected = None
    try:
        decoded = build_decoder(type(event))(tuple(topics), "0x" + raw.hex())
    except DecodeError:
        return
    assert expected is not None
    for argument, value in zip(plain, expected, strict=True):
        assert getattr(decoded, argument.name) == as_ours(argument.abi.type, value)


def as_ours(kind, value):
    if kind == "string":
        return clean_text(value)
    return "0x" + value.hex() if kind == "bytes32" else value


@given(st.binary(max_size=MAX_TEXT_BYTES))
def test_clean_text__of_any_bytes__holds_no_nul_and_is_utf8(raw):
    text = clean_text(raw)
    assert "\x00" not in text
    assert text.encode("utf-8").decode("utf-8") == text


def test_decoder__of_bytes_that_are_not_utf8__replaces_them():
    data = "0x" + abi_encode(["bytes"], [b"ok\xff\x00end"]).hex()
    topics = (ev.topic0(ev.EndpointChanged), "0x" + "00" * 31 + "07")
    assert build_decoder(ev.EndpointChanged)(topics, data) == ev.EndpointChanged(7, "ok\ufffd\ufffdend")


def test_read_bytes__over_the_limit__is_refused():
    fits = abi_encode(["bytes"], [b"x" * MAX_TEXT_BYTES]).hex()
    assert read_bytes(fits, 0, 64) == b"x" * MAX_TEXT_BYTES
    with pytest.raises(DecodeError, match="longer than 1024"):
        read_bytes(abi_encode(["bytes"], [b"x" * (MAX_TEXT_BYTES + 1)]).hex(), 0, 64)


WORD = "00" * 31


@pytest.mark.parametrize(
    ("topics", "data", "reason"),
    [
        ([], "0x" + WORD + "01", "2 topics"),
        (["0x" + WORD + "01", "0x" + WORD + "01"], "0x" + WORD + "01", "2 topics"),
        (["0x" + WORD + "01"], "0x", "shorter"),
        (["0x" + WORD + "01"], "0x" + WORD, "shorter"),
        (["0x" + WORD + "01"], "0x" + WORD + "02", "bool"),
        (["0x80" + WORD], "0x" + WORD + "01", "63 bits"),
    ],
)
def test_decoder__of_a_log_of_another_form__gives_the_reason(topics, data, reason):
    with pytest.raises(DecodeError, match=reason):
        build_decoder(ev.ServiceStatusChanged)((ev.topic0(ev.ServiceStatusChanged), *topics), data)


WORDS = st.binary(min_size=32, max_size=32) | st.integers(0, 2**11).map(lambda number: number.to_bytes(32, "big"))


def decoded_or_none(event, topics, raw):
    topics = (ev.topic0(event), *["0x" + topic.hex() for topic in topics])
    try:
        return LogDecoder(ADDRESSES).decode(ADDRESSES[CONTRACT_OF[event]], topics, "0x" + raw.hex())
    except DecodeError:
        return None


@given(st.data())
@settings(max_examples=500, deadline=None)
def test_log_decoder__of_arbitrary_bytes__agrees_with_eth_abi_or_refuses(data):
    event = data.draw(st.sampled_from(ALL))
    indexed = [argument for argument in ev.arguments(event) if argument.abi.indexed]
    plain = [argument for argument in ev.arguments(event) if not argument.abi.indexed]
    topics = data.draw(st.lists(WORDS, min_size=len(indexed), max_size=len(indexed)) | st.lists(WORDS, max_size=3))
    raw = b"".join(data.draw(st.lists(WORDS, max_size=len(plain) + 4))) + data.draw(
        st.just(b"") | st.binary(max_size=40)
    )
    decoded = decoded_or_none(event, topics, raw)
    if decoded is None:
        return
    values = [abi_decode([argument.abi.type], topic)[0] for argument, topic in zip(indexed, topics, strict=True)]
    values += abi_decode(["bytes" if argument.abi.type == "string" else argument.abi.type for argument in plain], raw)
    for argument, value in zip(indexed + plain, values, strict=True):
        assert getattr(decoded, argument.name) == as_ours(argument.abi.type, value)


def text_log(raw):
    """An EndpointChanged whose text is any bytes."""
    return (ev.topic0(ev.EndpointChanged), "0x" + WORD + "07"), "0x" + abi_encode(["bytes"], [raw]).hex()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"\x00", "\ufffd"),
        (b"a\xc3", "a\ufffd"),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        ("\u00e9\U0001f600".encode(), "\u00e9\U0001f600"),
        (b"x" * MAX_TEXT_BYTES, "x" * MAX_TEXT_BYTES),
    ],
)
def test_decoder__of_hostile_text__cleans_it(raw, text):
    assert build_decoder(ev.EndpointChanged)(*text_log(raw)) == ev.EndpointChanged(7, text)


@pytest.mark.parametrize("size", [MAX_TEXT_BYTES + 1, 10_000])
def test_decoder__of_text_over_the_limit__gives_the_reason(size):
    with pytest.raises(DecodeError, match="a text is longer than 1024 bytes"):
        build_decoder(ev.EndpointChanged)(*text_log(b"x" * size))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((0,), "among the fixed arguments"),
        ((31, 0), "among the fixed arguments"),
        ((64, 0), "beyond the data"),
        ((2**255, 0), "beyond the data"),
        ((32, 1), "ends beyond the data"),
        ((32, 2**256 - 1), "longer than 1024 bytes"),
        ((32, 1, 1), "not padded with zeros"),
    ],
)
def test_decoder__of_a_text_in_another_place__gives_the_reason(words, reason):
    data = "0x" + "".join(f"{word:064x}" for word in words)
    with pytest.raises(DecodeError, match=reason):
        build_decoder(ev.EndpointChanged)((ev.topic0(ev.EndpointChanged), "0x" + WORD + "07"), data)


def test_decoder__of_an_address_with_a_dirty_pad__is_refused():
    topics, data = encoded(opened(1))
    dirty = data[: 2 + 64] + "1" + data[2 + 65 :]
    with pytest.raises(DecodeError, match="padded"):
        build_decoder(ev.SessionOpened)(tuple(topics), dirty)


def test_log_decoder__of_another_contracts_event__does_not_know_it():
    decoder = LogDecoder(ADDRESSES)
    topics, data = encoded(listed(1, 1))
    assert decoder.knows(ADDRESSES["NodeRegistry"], topics[0])
    assert not decoder.knows(ADDRESSES["SessionManager"], topics[0])
    assert not decoder.knows("0x" + "77" * 20, topics[0])
    assert decoder.decode(ADDRESSES["NodeRegistry"], tuple(topics), data) == listed(1, 1)


@pytest.mark.parametrize(
    ("address", "topics"),
    [
        (ADDRESSES["SessionManager"], (ev.topic0(ev.ServiceListed),)),
        (ADDRESSES["NodeRegistry"], ("0x" + "77" * 32,)),
        (ADDRESSES["NodeRegistry"], ()),
        ("0x" + "77" * 20, (ev.topic0(ev.ServiceListed),)),
    ],
)
def test_log_decoder__of_a_log_that_is_no_event_of_ours__says_that_it_is_unknown(address, topics):
    with pytest.raises(DecodeError, match=r"^unknown event$"):
        LogDecoder(ADDRESSES).decode(address, topics, "0x")
