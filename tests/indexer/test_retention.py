"""Raw logs that are let go: rows and digests stay, and what needs the logs says so."""

import threading

import pytest

from indexer import events as ev
from indexer import query
from indexer.errors import StoreError
from indexer.notices import Stepped
from indexer.source import Source
from indexer.store import retention
from indexer.store.compare import examine
from indexer.store.writer import open_writer
from indexer.sync import SyncOptions, follow, run_once
from tests.indexer.conftest import everything
from tests.indexer.model import Node, listed, registered


@pytest.fixture
def chain(chain):
    """Blocks 2 to 21, each with one log, but block 2 with three."""
    chain.append(*registered(1), listed(1, 1))
    for price in range(19):
        chain.append(ev.PriceChanged(1, price))
    return chain


def load(writer, chain, finalized):
    fetched = Source(Node(chain), chain.deployment()).fetch(1, chain.head)
    writer.append(fetched.headers, fetched.logs, finalized)


def blocks_with_logs(store):
    return sorted({row[0] for row in everything(store)["raw_log"]})


def test_prune__below_the_final_block__lets_raw_logs_go_and_keeps_the_rest(writer, chain):
    load(writer, chain, finalized=15)
    before = everything(writer.store)
    assert writer.prune(5) == 6 + 3 + 7
    after = everything(writer.store)
    assert blocks_with_logs(writer.store) == list(range(10, 22))
    assert after | {"raw_log": None} == before | {"raw_log": None}
    status = query.status(writer.store).value
    assert (status.raw_logs, status.raw_logs_from) == (12, 10)
    assert writer.prune(5) == 0


@pytest.mark.parametrize(("finalized", "keep"), [(None, 0), (15, 15), (15, 100)])
def test_prune__of_nothing_old_enough__changes_nothing(writer, chain, finalized, keep):
    load(writer, chain, finalized)
    assert writer.prune(keep) == 0
    assert query.status(writer.store).value.raw_logs_from is None


def test_prune__of_many_logs__goes_in_bounded_steps_of_whole_blocks(writer, chain, monkeypatch):
    load(writer, chain, finalized=15)
    monkeypatch.setattr(retention, "MAX_LOGS", 4)
    steps = []
    while (deleted := writer.prune(5)) > 0:
        steps.append((deleted, query.status(writer.store).value.raw_logs_from))
    assert steps == [(6, 2), (4, 4), (4, 8), (2, 10)]  # block 1 alone has more than a step may hold
    assert blocks_with_logs(writer.store) == list(range(10, 22))


def test_rebuild__of_a_pruned_index__is_refused_and_changes_nothing(writer, chain):
    load(writer, chain, finalized=15)
    writer.prune(5)
    before = everything(writer.store)
    with pytest.raises(StoreError, match=r"raw logs from block 10 on only.*in a new database"):
        writer.rebuild()
    assert everything(writer.store) == before


def test_examine__of_a_pruned_index__compares_all_but_the_logs_that_are_gone(writer, chain, tmp_path):
    load(writer, chain, finalized=15)
    writer.prune(5)
    with open_writer(tmp_path / "other.sqlite", chain.deployment()) as other:
        load(other, chain, finalized=15)
        found = examine(writer.store, other.store)
        assert (found.first_block, found.last_block, found.raw_logs_from, found.differs_at) == (1, 21, 10, None)
        with other.store.write() as connection:
            connection.exec_driver_sql("UPDATE raw_log SET data = '0x' WHERE block_number = 9")
        assert examine(writer.store, other.store).differs_at is None
        with other.store.write() as connection:
            connection.exec_driver_sql("UPDATE raw_log SET data = '0x' WHERE block_number = 10")
        assert examine(writer.store, other.store).differs_at == 10
        with other.store.write() as connection:
            connection.exec_driver_sql("UPDATE service SET node_id = 9 WHERE valid_from = 5")
        assert examine(other.store, writer.store).differs_at == 5


def test_run_once__with_raw_log_blocks__prunes_as_it_goes_and_survives_a_reorg(writer, chain, node):
    node.finality = 6
    options = SyncOptions(first_range=4, max_range=4, first_pause=0, longest_pause=0, raw_log_blocks=2)
    run_once(writer, node, options=options)
    assert blocks_with_logs(writer.store) == list(range(chain.head - 8, chain.head + 1))
    chain.rewind(chain.head - 6)
    for price in range(8):
        chain.append(ev.PriceChanged(1, 100 + price))
    assert run_once(writer, node, options=options).reorgs == 1
    assert query.service(writer.store, 1).value.price == 107
    assert blocks_with_logs(writer.store) == list(range(chain.head - 8, chain.head + 1))


def test_follow__with_raw_log_blocks_and_no_new_block__leaves_the_database_alone(writer, chain, node, monkeypatch):
    stop, polls, pruned = threading.Event(), [], []
    prune = writer.prune
    monkeypatch.setattr(writer, "prune", lambda blocks: pruned.append(prune(blocks)) or pruned[-1])

    def observe(notice):
        if isinstance(notice, Stepped):
            polls.append(notice.outcome)
            if len(polls) == 6:
                stop.set()

    node.finality = 6
    options = SyncOptions(first_range=100, poll_seconds=0.001, raw_log_blocks=2)
    follow(writer, node, stop=stop, options=options, observer=observe)
    assert polls == ["advanced"] + 5 * ["current"]
    assert pruned == [6 + 3 + 10, 0]


def test_run_once__with_more_to_let_go_than_a_step_may__comes_to_its_end(writer, chain, node, monkeypatch):
    monkeypatch.setattr(retention, "MAX_LOGS", 2)
    node.finality = 6
    run_once(writer, node, options=SyncOptions(first_range=100, first_pause=0, raw_log_blocks=2))
    assert blocks_with_logs(writer.store) == list(range(chain.head - 8, chain.head + 1))
