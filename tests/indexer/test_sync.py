"""The loop against a node that lies, loses, repeats, moves and goes away. Rows must be those of an honest node."""

import random
import threading

import pytest

from indexer import events as ev
from indexer import query
from indexer.errors import (
    BadAnswerError,
    BehindError,
    ForkError,
    RangeTooLargeError,
    RateLimitedError,
    ReorgTooDeepError,
    RetryableError,
    UnavailableError,
    WrongChainError,
)
from indexer.source import Source
from indexer.sync import SyncOptions, follow, run_once
from tests.indexer.conftest import QUICK, clean_index, everything
from tests.indexer.model import (
    ADDRESSES,
    CLIENT,
    Chain,
    Node,
    attested,
    encoded,
    listed,
    opened,
    rated,
    registered,
    settled,
)

SMALL = SyncOptions(first_range=7, max_range=16, first_pause=0, longest_pause=0, poll_seconds=0.01, attempts=8)


def grow(chain, blocks, start=0):
    """Blocks of traffic, with empty ones between."""
    for number in range(start, start + blocks):
        if number % 5 == 4:
            chain.append()
        else:
            chain.append(
                opened(number), ev.PriceChanged(1, number), settled(number), rated(number), attested(number),
                ev.Credited(CLIENT, number),
            )  # fmt: skip


@pytest.fixture
def chain():
    made = Chain()
    made.append(*registered(1), listed(1, 1))
    grow(made, 40)
    return made


def assert_same_as_clean(writer, chain, tmp_path):
    with clean_index(tmp_path / "clean.sqlite", chain.deployment(), Node(chain)) as clean:
        assert everything(writer.store) == everything(clean.store)
        assert writer.cursor().number == chain.head
        assert writer.cursor().hash == chain.blocks[-1]["hash"]


def test_run_once__on_an_honest_node__catches_up_and_reports_progress(writer, node, chain):
    seen = []
    result = run_once(writer, node, options=SMALL, progress=lambda *at: seen.append(at))
    assert (result.block, result.head, result.reorgs, result.held) == (chain.head, chain.head, 0, False)
    assert (result.blocks, result.logs) == (chain.head, sum(len(block["logs"]) for block in chain.blocks))
    assert seen[0] == (7, chain.head, sum(len(block["logs"]) for block in chain.blocks[:8]))
    assert seen[-1] == (chain.head, chain.head, result.logs)
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
        raise BadAnswerError("method not found")

    node.faults["eth_getBlockReceipts"] = refuse
    node.faults["eth_getLogs"] = lambda logs, params: logs if "blockHash" in params[0] else []
    run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__where_receipts_lack_logs_too__never_passes_that_block(writer, node, chain):
    node.faults["eth_getLogs"] = lambda logs, _: [log for log in logs if log["blockNumber"] != "0x5"]
    node.faults["eth_getBlockReceipts"] = lambda receipts, params: [] if params[0] == "0x5" else receipts
    with pytest.raises(BadAnswerError, match="block 5 are not what its header announces"):
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
        lambda logs, _: [log | {"blockNumber": "0x1f4"} for log in logs],
        lambda logs, _: [log | {"logIndex": None} for log in logs],
        lambda logs, _: [*logs, *[log | {"data": "0x"} for log in logs]],
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
    run_once(writer, node, options=options, on_retry=lambda error, seconds: pauses.append((type(error), seconds)))
    assert pauses == [(RateLimitedError, seconds) for seconds in (0.001, 0.002, 0.004, 0.004, 0.004)]
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_dead_node__gives_up_after_its_attempts(writer, node):
    def die(*_):
        raise UnavailableError("no answer")

    node.faults["eth_chainId"] = die
    with pytest.raises(UnavailableError):
        run_once(writer, node, options=SMALL)
    assert len(node.asked("eth_chainId")) == SMALL.attempts


# --- reorgs


@pytest.mark.parametrize("depth", [1, 2, 7, 30])
@pytest.mark.parametrize("growth", [-1, 0, 3])
def test_run_once__after_a_reorg__has_the_rows_of_a_clean_index(writer, node, chain, tmp_path, depth, growth):
    run_once(writer, node, options=SMALL)
    chain.rewind(chain.head - depth)
    grow(chain, max(1, depth + growth), start=100)
    result = run_once(writer, node, options=SMALL)
    assert result.reorgs == 1
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__over_many_reorgs__has_the_rows_of_a_clean_index(writer, node, chain, tmp_path):
    chance = random.Random(11)
    for turn in range(25):
        chain.rewind(max(2, chain.head - chance.randrange(9)))
        grow(chain, chance.randrange(1, 8), start=1000 * (turn + 1))
        run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_the_head_replaced_at_its_height__follows(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    chain.rewind(chain.head - 1)
    chain.append(ev.PriceChanged(1, 4321))
    assert run_once(writer, node, options=QUICK).reorgs == 1
    assert query.service(writer.store, 1).value.price == 4321
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_lower_head_that_agrees__holds(writer, node, chain):
    run_once(writer, node, options=QUICK)
    before = everything(writer.store)
    kept = chain.blocks[:]
    chain.rewind(chain.head - 5)
    result = run_once(writer, node, options=QUICK)
    assert (result.held, result.block, result.head) == (True, kept[-1]["number"], chain.head)
    assert everything(writer.store) == before
    chain.blocks[:] = kept
    grow(chain, 2, start=200)
    result = run_once(writer, node, options=QUICK)
    assert (result.held, result.reorgs, result.block) == (False, 0, chain.head)


def test_run_once__with_a_reorg_whose_new_branch_cannot_be_read__keeps_the_old_rows(writer, node, chain):
    run_once(writer, node, options=QUICK)
    before = everything(writer.store)
    chain.rewind(chain.head - 3)
    grow(chain, 5, start=300)

    def fail(*_):
        raise UnavailableError("pruned")

    node.faults["eth_getLogs"] = fail
    with pytest.raises(UnavailableError):
        run_once(writer, node, options=QUICK)
    assert everything(writer.store) == before


def test_run_once__with_logs_of_the_old_fork_for_a_while__asks_again(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    stale = Node(Chain())
    stale.chain.blocks = chain.blocks[:]
    chain.rewind(chain.head - 3)
    grow(chain, 5, start=400)
    turns = iter([True, True])
    node.faults["eth_getLogs"] = lambda logs, params: stale.eth_getLogs(*params) if next(turns, False) else logs
    run_once(writer, node, options=QUICK)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_reorg_below_a_final_block__names_the_remedy(writer, node, chain):
    node.finality = 10
    run_once(writer, node, options=QUICK)
    assert query.status(writer.store).value.finalized_block == chain.head - 10
    before = everything(writer.store)
    chain.rewind(chain.head - 11)
    grow(chain, 12, start=500)
    with pytest.raises(ReorgTooDeepError, match=r"had been final.*move the index away"):
        run_once(writer, node, options=QUICK)
    assert everything(writer.store) == before


def test_run_once__with_a_reorg_down_to_the_final_block__follows(writer, node, chain, tmp_path):
    node.finality = 10
    run_once(writer, node, options=QUICK)
    chain.rewind(chain.head - 10)
    grow(chain, 11, start=500)
    assert run_once(writer, node, options=QUICK).reorgs == 1
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__where_nothing_is_final__answers_not_finalized(writer, node, chain):
    def refuse(block, params):
        if params[0] == "finalized":
            raise BadAnswerError("unknown tag")
        return block

    node.faults["eth_getBlockByNumber"] = refuse
    run_once(writer, node, options=QUICK)
    assert query.status(writer.store).value.finalized_block is None
    assert not query.as_of(writer.store).finalized


def test_as_of__below_and_above_the_final_block__says_which(writer, node, chain):
    node.finality = 10
    run_once(writer, node, options=SMALL)
    assert query.as_of(writer.store, chain.head - 10).finalized
    assert not query.as_of(writer.store, chain.head - 9).finalized


# --- identity


@pytest.mark.parametrize(
    ("method", "lie", "message"),
    [
        ("eth_chainId", lambda *_: "0x1", "on chain 1, the deployment on chain 4242"),
        (
            "eth_getBlockByNumber",
            lambda block, params: block | {"hash": "0x" + "88" * 32} if params[0] == "0x0" else block,
            "genesis block differs.*make demo",
        ),
        (
            "eth_getBlockByNumber",
            lambda block, params: block | {"hash": "0x" + "88" * 32} if params[0] == "0x1" else block,
            "block 1, where NodeRegistry was deployed, differs.*ape run deploy",
        ),
        ("eth_getCode", lambda *_: "0x", "code of NodeRegistry differs"),
    ],
)
@pytest.mark.parametrize("started", [False, True])
def test_run_once__on_another_chain__names_the_remedy_and_writes_nothing(writer, node, method, lie, message, started):
    if started:
        run_once(writer, node, options=QUICK)
    before = everything(writer.store)
    node.faults[method] = lie
    with pytest.raises(WrongChainError, match=message):
        run_once(writer, node, options=QUICK)
    assert everything(writer.store) == before


def test_run_once__before_the_deployment_block__waits(writer, node, chain):
    chain.rewind(0)
    with pytest.raises(BehindError, match=r"does not have block 1, where NodeRegistry was deployed.*deploy again"):
        run_once(writer, node, options=QUICK)


def test_run_once__after_a_failure__checks_the_identity_again(writer, node, chain):
    run_once(writer, node, options=QUICK)
    answers = iter([UnavailableError("restarting")])

    def fail_once(block, params):
        if params[0] == "latest" and (error := next(answers, None)):
            node.faults["eth_chainId"] = lambda *_: "0x1"
            raise error
        return block

    node.faults["eth_getBlockByNumber"] = fail_once
    with pytest.raises(WrongChainError):
        run_once(writer, node, options=QUICK)


def test_run_once__on_a_chain_restarted_while_it_runs__names_the_remedy_and_keeps_the_rows(writer, node, chain):
    """No answer failed in between, so that nothing but the other branch tells of the restart."""
    kept = []

    def restart(block, *_):
        if block >= 14 and not kept:
            kept.append(everything(writer.store))
            chain.rewind(9)
            grow(chain, 20, start=800)
            node.faults["eth_getCode"] = lambda *_: "0x"

    with pytest.raises(WrongChainError, match="code of NodeRegistry differs"):
        run_once(writer, node, options=SMALL, progress=restart)
    assert everything(writer.store) == kept[0]


def test_run_once__with_a_stale_header_at_the_cursor__does_not_mix_the_forks(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    stale = Node(Chain())
    stale.chain.blocks = chain.blocks[:]
    cursor = hex(chain.head)
    chain.rewind(chain.head - 2)
    grow(chain, 6, start=700)
    turns = iter([True])
    node.faults["eth_getBlockByNumber"] = lambda block, params: (
        stale.eth_getBlockByNumber(*params) if params[0] == cursor and next(turns, False) else block
    )
    result = run_once(writer, node, options=QUICK)
    assert result.reorgs == 1
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_final_block_of_another_fork__does_not_believe_it(writer, node, chain):
    node.finality = 10
    node.faults["eth_getBlockByNumber"] = lambda block, params: (
        block | {"hash": "0x" + "66" * 32} if params[0] == "finalized" else block
    )
    with pytest.raises(ForkError, match=r"final block .* is not ours"):
        run_once(writer, node, options=QUICK)
    assert writer.cursor() is None


def test_run_once__where_one_of_several_equal_logs_is_missing__needs_receipts_of_every_block(
    writer, node, chain, tmp_path
):
    """A block keeps a log of each kind, so its bloom tells nothing: only the thorough mode sees it."""
    number = chain.append(*[ev.Credited(CLIENT, amount) for amount in (1, 2, 4)])
    chain.append(ev.PriceChanged(1, 9))
    lost = {"blockNumber": hex(number), "logIndex": "0x1"}
    node.faults["eth_getLogs"] = lambda logs, _: [log for log in logs if not lost.items() <= log.items()]
    run_once(writer, node, options=SyncOptions(first_pause=0, thorough=True))
    assert_same_as_clean(writer, chain, tmp_path)


def test_source__asked_for_a_header_of_another_number__refuses(chain):
    node = Node(chain)
    node.faults["eth_getBlockByNumber"] = lambda block, _: block | {"number": "0x5"}
    with pytest.raises(BadAnswerError, match="gave block 5 for 6"):
        Source(node, chain.deployment()).header(6)


# --- following


def test_follow__in_a_thread__keeps_up_through_failures_until_stopped(writer, node, chain, tmp_path):
    stop, reached = threading.Event(), threading.Event()
    target = chain.head + 30
    failing = random.Random(5)

    def shaky(answer, _):
        if failing.random() < 0.1:
            raise UnavailableError("gone for a moment")
        return answer

    node.faults["eth_getBlockByNumber"] = shaky
    thread = threading.Thread(
        target=follow,
        args=(writer, node),
        kwargs={
            "stop": stop,
            "options": SMALL,
            "progress": lambda block, *_: reached.set() if block >= target else None,
        },
    )
    thread.start()
    for number in range(30):
        grow(chain, 1, start=600 + number)
    assert reached.wait(30)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert_same_as_clean(writer, chain, tmp_path)
