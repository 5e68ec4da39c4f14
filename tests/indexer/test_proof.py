"""Blocks proven by their receipts: by three ways of asking, and by a node that lies about them."""

import pytest

from indexer import events as ev
from indexer.errors import BehindError, ForkError, LieError, UnsupportedError
from indexer.source import Source
from tests.indexer.model import ADDRESSES, CLIENT, Chain, Node, encoded, opened, receipts_of

FOREIGN = "0x" + "99" * 20


@pytest.fixture
def chain():
    made = Chain()
    topics, data = encoded(ev.PriceChanged(1, 5))
    made.append(
        opened(1), ev.Credited(CLIENT, 1), ev.Credited(CLIENT, 2), logs=[(FOREIGN, topics, data), (FOREIGN, [], "0x")]
    )
    made.append()
    return made


@pytest.fixture
def told():
    return []


@pytest.fixture
def prove(node, chain, told):
    """Prove block 2; gives its logs as (index, address)."""
    source = Source(node, chain.deployment(), weakened=told.append)
    header = source.header(2)

    def read():
        source.head()
        return [(log.log_index, log.address, log.tx_hash) for log in source._prover.logs([header])[2]]

    return read


@pytest.fixture
def true(chain):
    logs = chain.blocks[2]["logs"]
    return [(at, log["address"], log["transactionHash"]) for at, log in enumerate(logs) if log["address"] != FOREIGN]


def refuse(*_):
    raise UnsupportedError("no such method")


def test_logs__of_a_block__are_ours_in_the_order_of_the_receipts(prove, true, told):
    assert prove() == true
    assert len(true) == 3
    assert told == []


def test_logs__without_block_receipts__are_proven_by_each_transactions_receipt(prove, true, node, told):
    node.faults["eth_getBlockReceipts"] = refuse
    assert prove() == true
    assert prove() == true
    assert len(node.asked("eth_getBlockReceipts")) == 1
    assert len(node.asked("eth_getTransactionReceipt")) == 10
    assert told == []


def test_logs__without_any_receipts__are_checked_by_the_bloom_and_that_is_told_once(prove, true, node, told):
    node.faults["eth_getBlockReceipts"] = node.faults["eth_getTransactionReceipt"] = refuse
    assert prove() == true
    assert prove() == true
    assert told == ["The node gives no receipts: the logs of a block are checked against the bloom of its header only."]
    node.faults["eth_getLogs"] = lambda logs, _: logs[1:]
    with pytest.raises(LieError, match="not what its header announces"):
        prove()


def test_logs__with_receipts_of_an_unknown_type__are_checked_by_the_bloom_and_that_is_told_once(
    prove, true, node, told
):
    node.faults["eth_getBlockReceipts"] = lambda receipts, _: [receipts[0] | {"type": "0x7e"}, *receipts[1:]]
    assert prove() == true
    assert prove() == true
    assert len(told) == 1
    assert "block 2 hold type 0x7e, whose encoding is not known here" in told[0]
    node.faults["eth_getBlockReceipts"] = lambda receipts, _: [receipts[0] | {"type": "0x7e"}, *receipts[3:]]
    with pytest.raises(LieError, match="not what its header announces"):
        prove()


LIES = {
    "one receipt less": lambda receipts: receipts[1:],
    "no receipts": lambda _: [],
    "one twice": lambda receipts: [*receipts, receipts[0]],
    "another order": lambda receipts: receipts[::-1],
    "one of several equal logs less": lambda receipts: [*receipts[:2], receipts[2] | {"logs": []}, *receipts[3:]],
    "another status": lambda receipts: [receipts[0] | {"status": "0x0"}, *receipts[1:]],
    "another type": lambda receipts: [receipts[0] | {"type": "0x0"}, *receipts[1:]],
    "another bloom": lambda receipts: [receipts[0] | {"logsBloom": "0x" + "00" * 256}, *receipts[1:]],
    "other data": lambda receipts: [
        receipts[0] | {"logs": [receipts[0]["logs"][0] | {"data": "0x" + "11" * 64}]}, *receipts[1:]
    ],
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_logs__with_receipts_that_are_not_the_headers__are_a_lie(prove, node, lie):
    node.faults["eth_getBlockReceipts"] = lambda receipts, _: LIES[lie](receipts)
    with pytest.raises(LieError, match="receipts of block 2 are not those whose root is in its header"):
        prove()


def test_logs__with_places_that_the_node_invents__have_the_proven_ones(prove, true, node):
    def renumber(receipts, _):
        return [
            receipt | {"logs": [log | {"logIndex": "0x0", "transactionIndex": "0x63"} for log in receipt["logs"]]}
            for receipt in receipts
        ]

    node.faults["eth_getBlockReceipts"] = renumber
    assert prove() == true


def test_logs__with_receipts_of_another_fork__wait_for_it_to_settle(prove, node, chain):
    other = chain.blocks[2] | {"hash": "0x" + "77" * 32}
    node.faults["eth_getBlockReceipts"] = lambda *_: receipts_of(other)
    with pytest.raises(ForkError, match="receipts of block 2 are of another fork"):
        prove()


@pytest.mark.parametrize("method", ["eth_getBlockReceipts", "eth_getTransactionReceipt"])
def test_logs__with_null_for_receipts__are_not_there_yet(prove, node, method):
    node.faults["eth_getBlockReceipts"] = refuse
    node.faults[method] = lambda *_: None
    with pytest.raises(BehindError, match=r"does not have the receipts of block 2.*not that far yet, or keeps no"):
        prove()


def test_logs__beside_a_strangers_log_of_any_size__are_read(chain, told):
    """Somebody's contract logs 300 kB into a block of ours: nobody may stop an index by that."""
    chain.append(ev.Credited(CLIENT, 9), logs=[(FOREIGN, [], "0x" + "ab" * 300_000)])
    node = Node(chain)
    source = Source(node, chain.deployment(), verify="full", weakened=told.append)
    assert [log.address for log in source.fetch(4, 4).logs] == [ADDRESSES["SessionManager"]]
    node.faults["eth_getBlockReceipts"] = node.faults["eth_getTransactionReceipt"] = refuse
    assert [log.address for log in source.fetch(4, 4).logs] == [ADDRESSES["SessionManager"]]
    assert len(told) == 1


def test_cost__of_proving__counts_blocks_calls_bytes_and_seconds(chain, node):
    source = Source(node, chain.deployment(), verify="full")
    begun = source.cost.seconds
    source.fetch(1, 3)
    assert (source.cost.blocks, source.cost.calls) == (2, 2)
    assert source.cost.seconds > begun
