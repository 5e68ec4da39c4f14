"""Each word against its layout as written down here a second time: offset and width of every field."""

from dataclasses import dataclass

import boa
import pytest
from eth_utils import to_checksum_address
from hypothesis import given, settings
from hypothesis import strategies as st

EXAMPLES = settings(max_examples=60, deadline=None)


@dataclass(frozen=True)
class Word:
    """A word: its functions in the harness, and each field's offset and width in bits."""

    name: str
    fields: tuple[tuple[int, int], ...]


WORDS = (
    Word("account", ((0, 160), (160, 48), (208, 48))),
    Word("buyer", ((0, 160), (160, 96))),
    Word("state", ((0, 128), (128, 32), (160, 40), (200, 40), (240, 8), (248, 1))),
    Word("dispute", ((0, 128), (128, 48), (176, 8))),
    Word("halves", ((0, 128), (128, 128))),
    Word("owner", ((0, 160), (160, 48), (208, 32), (240, 16))),
    Word("listing", ((0, 128), (128, 48), (176, 1))),
    Word("rating", ((0, 64), (64, 64), (128, 64))),
)
CHECKED = [
    (word, index)
    for word in WORDS
    for index, (_, width) in enumerate(word.fields)
    if width not in (160, 1) and (word.name, index) != ("dispute", 2)
]  # an address, a bool and a uint8 cannot be too wide


def field(width):
    """Any value of that many bits, often one at an end."""
    return st.one_of(st.sampled_from([0, 1, 2**width - 1]), st.integers(0, 2**width - 1))


def values(word):
    """A value for every field."""
    return st.tuples(*(field(width) for _, width in word.fields))


def argument(width, value):
    """A field as the harness takes it."""
    if width == 160:
        return to_checksum_address(value.to_bytes(20, "big"))
    return bool(value) if width == 1 else value


def pack(harness, word, contents):
    """The word that the harness forms."""
    arguments = [argument(width, value) for (_, width), value in zip(word.fields, contents, strict=True)]
    return getattr(harness, f"{word.name}_word")(*arguments)


def unpack(harness, word, packed):
    """The fields that the harness reads, as integers."""
    fields = getattr(harness, f"{word.name}_fields")(packed)
    return tuple(int(one, 16) if isinstance(one, str) else int(one) for one in fields)


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.name)
@given(data=st.data())
@EXAMPLES
def test_pack__any_fields__lie_where_the_layout_says_and_come_back(harness, word, data):
    contents = data.draw(values(word))
    packed = pack(harness, word, contents)
    assert packed == sum(value << offset for (offset, _), value in zip(word.fields, contents, strict=True))
    assert unpack(harness, word, packed) == contents


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.name)
@given(data=st.data())
@EXAMPLES
def test_pack__one_field_changed__leaves_its_neighbours(harness, word, data):
    contents = data.draw(values(word))
    index = data.draw(st.integers(0, len(contents) - 1))
    changed = list(contents)
    changed[index] = data.draw(field(word.fields[index][1]))
    offset, width = word.fields[index]
    difference = pack(harness, word, contents) ^ pack(harness, word, changed)
    assert difference & ~((2**width - 1) << offset) == 0


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.name)
@given(data=st.data())
@EXAMPLES
def test_unpack__any_word__reads_each_field_whatever_stands_beside_it(harness, word, data):
    packed = data.draw(st.integers(0, 2**256 - 1))
    expected = tuple((packed >> offset) & (2**width - 1) for offset, width in word.fields)
    assert unpack(harness, word, packed) == expected


@pytest.mark.parametrize(("word", "index"), CHECKED, ids=lambda one: getattr(one, "name", one))
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_pack__a_field_too_wide__reverts(harness, word, index, data):
    contents = list(data.draw(values(word)))
    width = word.fields[index][1]
    contents[index] = data.draw(st.one_of(st.just(2**width), st.integers(2**width, 2**256 - 1)))
    with boa.reverts("packing: field too wide"):
        pack(harness, word, contents)


def draws():
    """The fields of a draw word."""
    return st.tuples(st.binary(min_size=32, max_size=32), field(32), field(64))


@given(fields=draws())
@EXAMPLES
def test_pack_draw__any_fields__keeps_160_bits_of_the_terms(harness, fields):
    terms, attempt, count = fields
    packed = harness.draw_word(terms, attempt, count)
    low = int.from_bytes(terms, "big") % 2**160
    assert packed == low | attempt << 160 | count << 192
    assert harness.draw_fields(packed, terms) == (True, attempt, count)


@given(fields=draws(), bit=st.integers(0, 255))
@EXAMPLES
def test_same_terms__with_one_bit_flipped__differ_in_the_low_160(harness, fields, bit):
    terms, attempt, count = fields
    packed = harness.draw_word(terms, attempt, count)
    flipped = (int.from_bytes(terms, "big") ^ 1 << bit).to_bytes(32, "big")
    assert harness.draw_fields(packed, flipped)[0] is (bit >= 160)


@pytest.mark.parametrize(("attempt", "count"), [(2**32, 0), (0, 2**64), (2**256 - 1, 0), (0, 2**256 - 1)])
def test_pack_draw__a_field_too_wide__reverts(harness, attempt, count):
    with boa.reverts("packing: field too wide"):
        harness.draw_word(b"\0" * 32, attempt, count)
