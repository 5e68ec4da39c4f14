"""A range through the fold: decoding, rejections, digests."""

import json

import pytest
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from indexer import events as ev
from indexer import query, rows
from indexer.chain import parse_header, parse_log
from indexer.digest import NO_DIGEST, lines, next_digest
from indexer.project import Changes, PlacedFact, Rejection
from indexer.store.writer import open_writer
from tests.indexer.conftest import everything
from tests.indexer.model import ADDRESSES, CLIENT, Node, encoded, listed, registered, session_id

UNKNOWN = "0x" + "77" * 32


def source(chain, first, last):
    """Headers and all logs of some blocks, whatever their topics."""
    node = Node(chain)
    headers = [parse_header(node.eth_getBlockByNumber(hex(number), False)) for number in range(first, last + 1)]
    return headers, [parse_log(log) for block in chain.blocks[first : last + 1] for log in block["logs"]]


@pytest.fixture
def odd(chain):
    """A block in which a known event stands between logs that nobody knows."""
    chain.append(*registered(1), listed(1, 1))
    registry = ADDRESSES["NodeRegistry"]
    topics, data = encoded(ev.PriceChanged(1, 20))
    chain.append(logs=[(registry, [UNKNOWN], "0x1234"), (registry, topics, data), (registry, [], "0x")])
    return chain


def test_append__of_unknown_events__keeps_them_raw_counts_them_and_goes_on(writer, odd):
    writer.append(*source(odd, 1, 3), None)
    assert [(item.block, item.log_index, item.reason) for item in query.quarantined(writer.store).value.items] == [
        (3, 0, "unknown event"),
        (3, 2, "unknown event"),
    ]
    assert query.service(writer.store, 1).value.price == 20
    raw = [(row[1], row[6], row[7]) for row in everything(writer.store)["raw_log"] if row[0] == 3]
    topics, data = encoded(ev.PriceChanged(1, 20))
    assert raw == [(0, UNKNOWN, "0x1234"), (1, ",".join(topics), data), (2, "", "0x")]


def test_rebuild__over_unknown_events__makes_the_same_rows_again(writer, odd):
    writer.append(*source(odd, 1, 3), None)
    before = everything(writer.store)
    writer.rebuild()
    assert everything(writer.store) == before


def test_digest__with_an_unknown_event__differs_from_the_one_without(odd, tmp_path):
    digests = []
    for drop in (0, 1):
        with open_writer(tmp_path / f"{drop}.sqlite", odd.deployment()) as writer:
            headers, logs = source(odd, 1, 3)
            writer.append(headers, logs[: len(logs) - drop], None)
            digests.append(query.status(writer.store).value.digest)
    assert digests[0] != digests[1]


def test_next_digest__of_a_block__is_keccak_over_what_its_docstring_says():
    stake = rows.NodeStake(7, 2**255, 0, 5)
    fact = PlacedFact(3, rows.Rating(session_id(1), 7, CLIENT, 1, 80, 2**200, counted=True))
    changes = Changes((stake,), (fact,), (Rejection(4, "unknown event"),))
    text = (
        f'["node_stake","7","{2**255}","0","5"]\n'
        f'["rating","3","{session_id(1)}","7","{CLIENT}","1","80","{2**200}",true]\n'
        '["quarantine","4","unknown event"]\n'
    )
    head = bytes(32) + (9).to_bytes(32, "big") + bytes.fromhex("ab" * 32)
    assert next_digest(NO_DIGEST, 9, "0x" + "ab" * 32, changes) == "0x" + keccak(head + text.encode()).hex()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.integers(0, 2**256 - 1))
def test_lines__of_any_text_and_number__are_json_in_ascii(text, number):
    changes = Changes(facts=(PlacedFact(0, rows.Parameter("NodeRegistry", text, str(number))),))
    values = ["parameter", "0", "NodeRegistry", text, str(number)]
    assert lines(changes).decode("ascii") == json.dumps(values, separators=(",", ":")) + "\n"
