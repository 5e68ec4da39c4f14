"""How far the loop goes, what it reads ahead, and how it follows."""

import random
import threading

import pytest

from indexer.ahead import RESULTS_AHEAD
from indexer.errors import (
    BehindError,
    ReorgTooDeepError,
    StoreError,
    StoreUnavailableError,
    UnavailableError,
)
from indexer.notices import Retried
from indexer.sync import SyncOptions, follow, run_once
from tests.indexer.conftest import QUICK, everything, steps_to
from tests.indexer.model import (
    Chain,
)
from tests.indexer.traffic import SMALL, assert_same_as_clean, busy_chain, grow


@pytest.fixture
def chain():
    return busy_chain()


# --- settings


@pytest.mark.parametrize("confirmations", [1, 5, 39])
def test_run_once__with_confirmations__stays_behind_the_head(writer, node, chain, tmp_path, confirmations):
    options = SyncOptions(first_pause=0, confirmations=confirmations)
    result = run_once(writer, node, options=options)
    assert (result.block, result.head) == (chain.head - confirmations, chain.head)
    cut = Chain()
    cut.blocks = chain.blocks[: chain.head - confirmations + 1]
    assert_same_as_clean(writer, cut, tmp_path)


def test_run_once__with_reorgs_within_the_confirmations__never_undoes_a_row(writer, node, chain, tmp_path):
    chance = random.Random(23)
    options = SyncOptions(first_pause=0, confirmations=6)
    for turn in range(12):
        chain.rewind(chain.head - chance.randrange(7))
        grow(chain, chance.randrange(7, 10), start=1000 * (turn + 1))
        assert run_once(writer, node, options=options).reorgs == 0
    cut = Chain()
    cut.blocks = chain.blocks[: chain.head - 5]
    assert_same_as_clean(writer, cut, tmp_path)


def test_run_once__with_more_confirmations_than_before__undoes_only_what_was_replaced(writer, node, chain, tmp_path):
    run_once(writer, node, options=QUICK)
    many = SyncOptions(first_pause=0, confirmations=10)
    assert run_once(writer, node, options=many).block == chain.head
    assert_same_as_clean(writer, chain, tmp_path)
    before = chain.head
    chain.rewind(before - 2)
    grow(chain, 4, start=300)
    assert run_once(writer, node, options=many).block == before
    cut = Chain()
    cut.blocks = chain.blocks[: before + 1]
    (tmp_path / "clean.sqlite").unlink()
    assert_same_as_clean(writer, cut, tmp_path)


def test_run_once__with_fewer_blocks_than_confirmations__waits(writer, node, chain):
    with pytest.raises(BehindError, match="with 100 confirmations the first block 1 is not there yet"):
        run_once(writer, node, options=SyncOptions(first_pause=0, confirmations=100))
    assert writer.cursor() is None


@pytest.mark.parametrize(("finality", "below"), [("finalized", 20), ("safe", 10), (7, 7), (0, 0)])
def test_run_once__with_a_finality__calls_that_block_final(writer, node, chain, finality, below):
    node.finality = 20
    run_once(writer, node, options=SyncOptions(first_pause=0, finality=finality))
    assert writer.cursor().finalized == chain.head - below


def test_run_once__with_a_finality_in_blocks__refuses_a_deeper_reorg(writer, node, chain):
    options = SyncOptions(first_pause=0, finality=7)
    run_once(writer, node, options=options)
    before = everything(writer.store)
    chain.rewind(chain.head - 8)
    grow(chain, 12, start=500)
    with pytest.raises(ReorgTooDeepError):
        run_once(writer, node, options=options)
    assert everything(writer.store) == before


# --- reading ahead


def test_run_once__over_many_ranges__reads_each_block_once_and_writes_while_it_reads(writer, node, chain, tmp_path):
    """Ranges are read while others are written, and those that wait are few."""
    behind = []

    def step(notice):
        asked = [int(params[0]["toBlock"], 16) for params in node.asked("eth_getLogs")]
        behind.append((notice.cursor.number, max(asked)))

    read, asked = threading.Condition(), [0]

    def note(logs, params):
        with read:
            asked.append(int(params[0]["toBlock"], 16))
            read.notify_all()
        return logs

    node.faults["eth_getLogs"] = note
    append = writer.append

    def slowly(headers, *rest):
        last = headers[-1].number
        with read:
            assert read.wait_for(lambda: last == chain.head or max(asked) > last, 10), "nothing was read meanwhile"
        append(headers, *rest)

    writer.append = slowly
    run_once(writer, node, options=SyncOptions(first_range=3, max_range=3, first_pause=0), observer=steps_to(step))
    asked = [(int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16)) for params in node.asked("eth_getLogs")]
    assert asked == [(first, min(first + 2, chain.head)) for first in range(1, chain.head + 1, 3)]
    assert all(ahead - written <= 3 * (RESULTS_AHEAD + 1) for written, ahead in behind)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_reorg_between_two_ranges__drops_what_was_read_ahead(writer, node, chain, tmp_path):
    turns = []

    def move(step):
        if step.outcome == "advanced" and len(turns) < 3:
            turns.append(step.cursor.number)
            chain.rewind(max(2, step.cursor.number - 2))
            grow(chain, 30, start=1000 * len(turns))

    run_once(writer, node, options=SMALL, observer=steps_to(move))
    assert len(turns) == 3
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_failure_while_reading_ahead__keeps_what_was_written_and_goes_on(
    writer, node, chain, tmp_path
):
    failing = random.Random(3)

    def fail(logs, _):
        if failing.random() < 0.4:
            raise UnavailableError("gone for a moment")
        return logs

    node.faults["eth_getLogs"] = fail
    run_once(writer, node, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_write_that_fails__raises_it_and_leaves_no_thread(writer, node, monkeypatch):
    def full(*_):
        raise StoreError("The disk is full: make room.")

    monkeypatch.setattr(writer, "append", full)
    with pytest.raises(StoreError):
        run_once(writer, node, options=SMALL)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_run_once__stopped_while_it_reads_ahead__asks_nothing_more(writer, node, chain):
    """The stop comes while the next range is read: of that, only the request that runs is waited for."""
    stop = threading.Event()
    for _ in range(600):
        chain.append()

    def stop_at_the_next_range(block, params):
        if params[0] == hex(251):
            stop.set()
        return block

    node.faults["eth_getBlockByNumber"] = stop_at_the_next_range
    options = SyncOptions(first_range=250, first_pause=0)
    assert run_once(writer, node, options=options, stop=stop).block == 250
    asked = {int(params[0], 16) for params in node.asked("eth_getBlockByNumber") if params[0].startswith("0x")}
    assert max(asked) == 350
    assert run_once(writer, node, options=options).block == chain.head


def test_run_once__with_a_database_that_is_locked_for_a_while__waits_and_blames_no_node(
    writer, node, chain, tmp_path, monkeypatch
):
    append, refusals, told = writer.append, iter(range(3)), []

    def locked(*arguments):
        if next(refusals, None) is not None:
            raise StoreUnavailableError("The database is locked; waiting.")
        append(*arguments)

    monkeypatch.setattr(writer, "append", locked)
    options = SyncOptions(first_range=7, max_range=16, first_pause=0.001, longest_pause=0.002)
    run_once(writer, node, options=options, observer=told.append)
    retried = [(type(notice.error), notice.seconds) for notice in told if isinstance(notice, Retried)]
    assert retried == [(StoreUnavailableError, seconds) for seconds in (0.001, 0.002, 0.002)]
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__stopped_between_two_ranges__ends_after_the_one_that_was_written(writer, node, chain):
    stop = threading.Event()
    result = run_once(writer, node, options=SMALL, stop=stop, observer=steps_to(lambda _: stop.set()))
    assert result.block == 7
    assert run_once(writer, node, options=SMALL).block == chain.head


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
            "observer": steps_to(lambda step: reached.set() if step.cursor.number >= target else None),
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
