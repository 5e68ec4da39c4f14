"""The loop against a node that lies, loses, repeats and refuses. Rows must be those of an honest node."""

import random
import threading

import pytest

from indexer import events as ev
from indexer import query
from indexer.errors import (
    BadAnswerError,
    RangeTooLargeError,
    RateLimitedError,
    RetryableError,
    UnavailableError,
    UnsupportedError,
)
from indexer.notices import Retried
from indexer.sync import SyncOptions, run_once
from tests.indexer.conftest import QUICK, everything, steps_to
from tests.indexer.model import (
    ADDRESSES,
    CLIENT,
    encoded,
)
from tests.indexer.traffic import SMALL, assert_same_as_clean, busy_chain


@pytest.fixture
def chain():
    return busy_chain()


def test_run_once__on_an_honest_node__catches_up_and_reports_progress(writer, node, chain):
    seen = []
    result = run_once(writer, node, options=SMALL, observer=steps_to(seen.append))
    assert (result.block, result.head, result.reorgs, result.held) == (chain.head, chain.head, 0, False)
    assert (result.blocks, result.logs) == (chain.head, sum(len(block["logs"]) for block in chain.blocks))
    first, last = seen[0], seen[-1]
    assert (first.outcome, first.cursor.number, first.head.number, first.blocks) == ("advanced", 7, chain.head, 7)
    assert first.logs == sum(len(block["logs"]) for block in chain.blocks[:8])
    assert first.timestamp == chain.blocks[7]["timestamp"]
    assert (last.outcome, last.cursor.number, last.blocks, last.timestamp) == (
        "current", chain.head, 0, last.head.timestamp
    )  # fmt: skip
    assert sum(step.logs for step in seen) == result.logs
    assert query.status(writer.store).value.quarantined == 0


def test_run_once__again_without_new_blocks__writes_nothing(writer, node):
    run_once(writer, node, options=QUICK)
    before = everything(writer.store)
    assert run_once(writer, node, options=QUICK).blocks == 0
    assert everything(writer.store) == before


def test_run_once__with_stop_set__does_nothing(writer, node):
    stop = threading.Event()
    stop.set()
    assert run_once(writer, node, options=QUICK, stop=stop).block is None
    assert node.calls == []


# --- answers that lack or hold too much


def sometimes(seed, share, lie):
    """Let a fault happen in a share of the answers."""
    chance = random.Random(seed)
    return lambda answer, _: lie(answer) if chance.random() < share else answer


LIES = {
    "nothing": lambda _: [],
    "cut at ten": lambda logs: logs[:10],
    "every second one": lambda logs: logs[::2],
    "the first missing": lambda logs: logs[1:],
    "one kind missing": lambda logs: [log for log in logs if log["topics"][0] != ev.topic0(ev.Credited)],
    "twice": lambda logs: logs + logs,
    "shuffled": lambda logs: random.Random(3).sample(logs, len(logs)),
    "upper case": lambda logs: [log | {"data": "0x" + log["data"][2:].upper()} for log in logs],
    "removed": lambda logs: [*logs, *[log | {"removed": True, "blockHash": "0x" + "99" * 32} for log in logs[:3]]],
    "foreign": lambda logs: [*logs, *[log | {"address": "0x" + "99" * 20, "logIndex": "0x63"} for log in logs]],
    "another contract's": lambda logs: [
        *logs, *[log | {"address": ADDRESSES["ExperienceLedger"], "logIndex": "0x63"} for log in logs[:1]]
    ],
    "of other blocks": lambda logs: [log | {"blockNumber": "0x1f4"} for log in logs],
    "contradictory": lambda logs: [*logs, *[log | {"data": "0x"} for log in logs]],
    "altered": lambda logs: [*logs[:-1], *[log | {"data": "0x" + "11" * 64} for log in logs[-1:]]],
    "without topics": lambda logs: [*logs, *[log | {"topics": [], "logIndex": "0x62"} for log in logs]],
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("share", [0.3, 1])
def test_run_once__with_untrue_log_answers__keeps_the_true_rows(writer, node, chain, tmp_path, lie, share):
    node.faults["eth_getLogs"] = sometimes(lie, share, LIES[lie])
    run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_long_answer_cut_in_its_last_block__keeps_the_true_rows(writer, node, chain, tmp_path):
    """Nothing but the length of the answer gives it away: every kind of event is still there in that block."""
    chain.append(*[ev.Credited(CLIENT, amount) for amount in (1, 2, 4, 8)])
    node.faults["eth_getLogs"] = lambda logs, _: logs[:-2] if len(logs) > 100 else logs
    run_once(writer, node, options=QUICK)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__where_receipts_are_unknown__asks_logs_by_block_hash(writer, node, chain, tmp_path):
    def refuse(*_):
        raise UnsupportedError("method not found")

    node.faults["eth_getBlockReceipts"] = node.faults["eth_getTransactionReceipt"] = refuse
    node.faults["eth_getLogs"] = lambda logs, params: logs if "blockHash" in params[0] else []
    run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__where_receipts_lack_logs_too__never_passes_that_block(writer, node, chain):
    node.faults["eth_getLogs"] = lambda logs, _: [log for log in logs if log["blockNumber"] != "0x5"]
    node.faults["eth_getBlockReceipts"] = lambda receipts, params: [] if params[0] == "0x5" else receipts
    with pytest.raises(BadAnswerError, match="receipts of block 5 are not those whose root is in its header"):
        run_once(writer, node, options=SMALL)
    assert writer.cursor() is None or writer.cursor().number < 5


def test_run_once__with_other_contracts_in_the_bloom__asks_receipts_only_there(writer, node, chain):
    topics, data = encoded(ev.PriceChanged(1, 5))
    chain.append(logs=[("0x" + "99" * 20, topics, data)])
    before = len(node.asked("eth_getBlockReceipts"))
    run_once(writer, node, options=QUICK)
    assert len(node.asked("eth_getBlockReceipts")) - before <= 3
    assert writer.cursor().number == chain.head


@pytest.mark.parametrize(
    "lie",
    [
        lambda *_: None,
        lambda logs, _: {"logs": logs},
        lambda *_: [1],
        lambda logs, _: [log | {"data": "0x_0"} for log in logs],
        lambda logs, _: [log | {"topics": ["0x00"]} for log in logs],
        lambda logs, _: [log | {"topics": log["topics"] * 9} for log in logs],
        lambda logs, _: [log | {"blockNumber": "0xffffffffffffffff"} for log in logs],
        lambda logs, _: [log | {"logIndex": None} for log in logs],
        lambda logs, _: [log | {"data": "0x" + "00" * 70_000} for log in logs],
        lambda logs, _: [log | {"blockHash": "0x" + "99" * 32} for log in logs],
    ],
)
def test_run_once__with_malformed_log_answers__gives_up_without_rows(writer, node, lie):
    node.faults["eth_getLogs"] = lie
    with pytest.raises(RetryableError):
        run_once(writer, node, options=SMALL)
    assert writer.cursor() is None


@pytest.mark.parametrize(
    "lie",
    [
        lambda _: None,
        lambda _: [],
        lambda block: block | {"number": hex(int(block["number"], 16) + 1)},
        lambda block: block | {"hash": "0x12"},
        lambda block: block | {"parentHash": "0x" + "77" * 32},
        lambda block: block | {"logsBloom": "0x00"},
        lambda block: block | {"timestamp": 12},
    ],
)
def test_run_once__with_a_wrong_block__does_not_pass_it(writer, node, lie):
    node.faults["eth_getBlockByNumber"] = lambda block, params: lie(block) if params[0] == "0x9" else block
    with pytest.raises(RetryableError):
        run_once(writer, node, options=SMALL)
    assert writer.cursor() is None or writer.cursor().number < 9


def test_run_once__after_a_null_block_appears__goes_on(writer, node, chain, tmp_path):
    misses = iter([True, True, True])
    node.faults["eth_getBlockByNumber"] = lambda block, params: (
        None if params[0] == "0x9" and next(misses, False) else block
    )
    run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


# --- how a hole is found


def proven(node):
    return [int(params[0], 16) for params in node.asked("eth_getBlockReceipts")]


def test_run_once__with_an_honest_answer__proves_only_its_last_block_with_logs(writer, node, chain):
    chain.append()
    result = run_once(writer, node, options=QUICK)
    assert proven(node) == [chain.head - 2]  # the last two blocks are empty
    assert (result.verified_blocks, result.verification_calls) == (1, 1)
    assert result.notices == ()


def test_run_once__in_full__proves_every_block_with_logs_and_no_other(writer, node, chain):
    run_once(writer, node, options=SyncOptions(verify="full", first_range=1000))
    assert proven(node) == [block["number"] for block in chain.blocks[1:] if block["logs"]]


def test_run_once__in_full__asks_no_empty_block_by_the_bloom_of_its_header(writer, node, chain):
    strangers = chain.append(logs=[("0x" + "99" * 20, [], "0x")])
    run_once(writer, node, options=SyncOptions(verify="full", first_range=1000))
    assert strangers in proven(node)
    assert {block["number"] for block in chain.blocks if not block["logs"]}.isdisjoint(proven(node))


def test_run_once__with_a_hole__throws_the_answer_away_and_halves_the_range(writer, node, chain, tmp_path):
    node.faults["eth_getLogs"] = lambda logs, _: [log for log in logs if log["blockNumber"] != "0x14"]
    result = run_once(writer, node, options=QUICK)
    asked = [(int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16)) for params in node.asked("eth_getLogs")]
    assert asked[0] == (1, chain.head)
    assert asked[1] == (1, chain.head // 2)
    assert (20, 20) in asked
    reason = "The node left out logs of block 20 that its receipts hold; try another RPC address."
    alone = "There is no other RPC address, so it is asked again."
    assert result.notices == (f"memory was set aside: {reason} {alone}",)
    assert_same_as_clean(writer, chain, tmp_path)


UNKNOWN = ("0x" + "5a" * 32,)


@pytest.mark.parametrize("topics", [UNKNOWN, (), UNKNOWN * 4])
def test_run_once__with_an_unknown_event_of_ours__keeps_it_raw_and_goes_on(writer, node, chain, tmp_path, topics):
    number = chain.append(ev.PriceChanged(1, 7), logs=[(ADDRESSES["NodeRegistry"], topics, "0x1234")])
    chain.append(ev.PriceChanged(1, 8))
    run_once(writer, node, options=QUICK)
    rows = everything(writer.store)
    assert [row[:2] for row in rows["quarantine"]] == [(number, 1)]
    assert "unknown event" in rows["quarantine"][0]
    assert any(row[:2] == (number, 1) and "0x1234" in row for row in rows["raw_log"])
    assert query.service(writer.store, 1).value.price == 8
    before = everything(writer.store)
    writer.rebuild()
    assert everything(writer.store) == before
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_an_unknown_event_left_out__sees_it_in_full_only(writer, node, chain, tmp_path):
    chain.append(ev.PriceChanged(1, 7), logs=[(ADDRESSES["NodeRegistry"], UNKNOWN, "0x")])
    chain.append(ev.PriceChanged(1, 8))
    node.faults["eth_getLogs"] = lambda logs, _: [log for log in logs if tuple(log["topics"]) != UNKNOWN]
    run_once(writer, node, options=SyncOptions(verify="full", first_pause=0))
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_made_up_unknown_event__does_not_believe_it(writer, node, chain, tmp_path):
    made_up = {"address": ADDRESSES["NodeRegistry"], "topics": list(UNKNOWN), "logIndex": "0x40"}
    node.faults["eth_getLogs"] = lambda logs, _: [*logs, *[log | made_up for log in logs[:1]]]
    run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


# --- limits


def test_run_once__with_a_node_that_limits_ranges__splits_and_keeps_all(writer, node, chain, tmp_path):
    def limit(logs, params):
        asked = int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) + 1
        if asked > 3:
            raise RangeTooLargeError("block range too large")
        return logs

    node.faults["eth_getLogs"] = limit
    run_once(writer, node, options=QUICK)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_block_too_large_for_logs__reads_its_receipts(writer, node, chain, tmp_path):
    def limit(logs, params):
        if int(params[0]["fromBlock"], 16) <= 9 <= int(params[0]["toBlock"], 16):
            raise RangeTooLargeError("query returned more than 3 results")
        return logs

    node.faults["eth_getLogs"] = limit
    run_once(writer, node, options=QUICK)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_rate_limits__waits_longer_each_time_and_goes_on(writer, node, chain, tmp_path):
    refusals = iter(range(5))

    def limit(logs, _):
        if next(refusals, None) is not None:
            raise RateLimitedError("slow down")
        return logs

    node.faults["eth_getLogs"] = limit
    pauses = []
    options = SyncOptions(first_pause=0.001, longest_pause=0.004, attempts=8)
    run_once(writer, node, options=options, observer=pauses.append)
    pauses = [(type(notice.error), round(notice.seconds, 6)) for notice in pauses if isinstance(notice, Retried)]
    assert pauses == [(RateLimitedError, seconds) for seconds in (0.001, 0.002, 0.004, 0.004, 0.004)]
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_dead_node__gives_up_after_its_attempts(writer, node):
    def die(*_):
        raise UnavailableError("no answer")

    node.faults["eth_chainId"] = die
    with pytest.raises(UnavailableError):
        run_once(writer, node, options=SMALL)
    assert len(node.asked("eth_chainId")) == SMALL.attempts
