"""Reading a node's logs: what is one comes out in one form, whatever else raises BadAnswerError."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.chain import MAX_LOG_DATA, Log, parse_log
from indexer.errors import BadAnswerError

GOOD = {
    "address": "0x" + "a1" * 20,
    "topics": ["0x" + "b2" * 32, "0x" + "c3" * 32],
    "data": "0x" + "d4" * 40,
    "blockNumber": "0x1f4",
    "blockHash": "0x" + "e5" * 32,
    "transactionHash": "0x" + "f6" * 32,
    "transactionIndex": "0x2",
    "logIndex": "0x11",
    "removed": False,
}
READ = Log(
    500, 17, "0x" + "e5" * 32, "0x" + "f6" * 32, 2, "0x" + "a1" * 20, ("0x" + "b2" * 32, "0x" + "c3" * 32),
    "0x" + "d4" * 40,
)  # fmt: skip
HEX_FIELDS = ["address", "data", "blockNumber", "blockHash", "transactionHash", "transactionIndex", "logIndex"]


def test_parse_log__of_a_log__gives_its_fields():
    assert parse_log(GOOD) == READ


def test_parse_log__in_upper_case__gives_lower_case():
    shouted = {name: value.upper().replace("0X", "0x") for name, value in GOOD.items() if name in HEX_FIELDS}
    assert parse_log(GOOD | shouted) == READ


@pytest.mark.parametrize("count", range(5))
def test_parse_log__of_up_to_four_topics__gives_them_all(count):
    topics = [f"0x{number:064x}" for number in range(count)]
    assert parse_log(GOOD | {"topics": topics}).topics == tuple(topics)


@pytest.mark.parametrize("data", ["0x", "0x" + "00" * ((MAX_LOG_DATA - 2) // 2)])
def test_parse_log__of_the_shortest_and_longest_data__keeps_it(data):
    assert parse_log(GOOD | {"data": data}).data == data


def test_parse_log__marked_as_removed__is_none():
    assert parse_log(GOOD | {"removed": True}) is None
    assert parse_log(GOOD | {"removed": {"by": "a reorg"}}) is None
    assert parse_log({name: value for name, value in GOOD.items() if name != "removed"}) == READ


@pytest.mark.parametrize("field", HEX_FIELDS)
@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        True,
        [],
        {},
        "",
        "0x",
        "0",
        "x",
        "00x1",
        "0x0x",
        "0x1g",
        "0x1_0",
        "0x 1",
        " 0x1",
        "0x1\n",
        "-0x1",
        "0x\ud800",
    ],
)
def test_parse_log__with_a_field_of_another_form__is_refused(field, value):
    if (field, value) == ("data", "0x"):
        return
    with pytest.raises(BadAnswerError, match="no valid log"):
        parse_log(GOOD | {field: value})


@pytest.mark.parametrize("field", [*HEX_FIELDS, "topics"])
def test_parse_log__without_a_field__is_refused(field):
    with pytest.raises(BadAnswerError):
        parse_log({name: value for name, value in GOOD.items() if name != field})


@pytest.mark.parametrize("field", ["address", "blockHash", "transactionHash", "data"])
def test_parse_log__with_a_field_a_digit_too_long__is_refused(field):
    with pytest.raises(BadAnswerError):
        parse_log(GOOD | {field: GOOD[field] + "0"})


@pytest.mark.parametrize("field", ["blockNumber", "transactionIndex", "logIndex"])
def test_parse_log__with_a_number_past_63_bits__is_refused(field):
    assert parse_log(GOOD | {field: hex(2**63 - 1)}) is not None
    with pytest.raises(BadAnswerError):
        parse_log(GOOD | {field: hex(2**63)})


@pytest.mark.parametrize(
    "changed",
    [
        {"topics": "0x" + "00" * 32},
        {"topics": ["0x" + "00" * 32] * 5},
        {"topics": ["0x" + "00" * 31]},
        {"topics": [None]},
        {"topics": [["0x" + "00" * 32]]},
        {"topics": {"0x" + "00" * 32: 1}},
        {"data": "0x" + "00" * (MAX_LOG_DATA // 2)},
        {"blockHash": GOOD["blockHash"] + " " + GOOD["transactionHash"], "transactionHash": GOOD["address"]},
    ],
)
def test_parse_log__with_words_of_another_form__is_refused(changed):
    with pytest.raises(BadAnswerError):
        parse_log(GOOD | changed)


TEXTS = st.text("0123456789abcdefABCDEFx _\n", max_size=8) | st.integers(0, 70).map(lambda size: "0x" + "0" * size)
VALUES = st.none() | st.booleans() | st.integers() | TEXTS


@given(st.dictionaries(st.sampled_from([*HEX_FIELDS, "topics"]), VALUES | st.lists(VALUES, max_size=5)))
def test_parse_log__with_any_fields_replaced__is_refused_or_of_canonical_form(changed):
    try:
        log = parse_log(GOOD | changed)
    except BadAnswerError:
        return
    assert all(len(text) == 66 and int(text, 16) >= 0 for text in (log.block_hash, log.tx_hash, *log.topics))
    assert bytes.fromhex(log.data[2:]).hex() == log.data[2:]
    assert bytes.fromhex(log.address[2:]).hex() == log.address[2:]
    assert all(0 <= number < 2**63 for number in (log.block_number, log.log_index, log.tx_index))


@pytest.mark.parametrize("value", [None, 1, "log", [], [GOOD]])
def test_parse_log__of_what_is_no_object__is_refused(value):
    with pytest.raises(BadAnswerError, match="not an object"):
        parse_log(json.loads(json.dumps(value)))
