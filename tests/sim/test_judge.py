"""The judge of the simulation must see what is wrong, or the simulation shows nothing."""

import sqlite3
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from indexer.errors import BadAnswerError, UnavailableError
from tests.sim.case import Size
from tests.sim.lab import Outcome
from tests.sim.stage import Stage
from tests.sim.stores import SqliteStore

TINY = Size(blocks=8, events=8, own_blocks=4, own_events=2, cut=5, range_limit=3, result_limit=20)


@pytest.fixture(scope="module")
def stage():
    with Stage(TINY) as made:
        yield made


@pytest.fixture(scope="module")
def indexed(stage):
    with ExitStack() as stack:
        made = stage.lab(stack, TINY, False, "sqlite", 1, "full")
        assert made.run() is None
        yield made


@pytest.fixture
def lab(indexed, tmp_path):
    copy = tmp_path / "index.sqlite"
    with closing(sqlite3.connect(indexed.store.path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return replace(indexed, store=SqliteStore(copy))


def test_judge__of_the_rows_of_a_clean_index__is_exact(lab):
    assert lab.judge().outcome is Outcome.EXACT


def edit(lab, statement):
    with closing(sqlite3.connect(lab.store.path)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("DELETE FROM raw_log WHERE rowid = (SELECT max(rowid) FROM raw_log)", "raw_log"),
        ("UPDATE service SET price = '1' || substr(price, 2) WHERE valid_to IS NULL", "service"),
        ("UPDATE node_stake SET valid_to = valid_to + 1 WHERE valid_to IS NOT NULL", "node_stake"),
        ("DELETE FROM parameter WHERE name = 'min_stake'", "parameter"),
        ("UPDATE block SET digest = hash", "block"),
        ("DELETE FROM session WHERE number = 1", "session"),
    ],
)
def test_judge__of_rows_that_were_changed__names_the_table(lab, statement, table):
    edit(lab, statement)
    verdict = lab.judge()
    assert verdict.outcome is Outcome.WRONG
    assert verdict.why.startswith(table)
    stopped = lab.judge(UnavailableError("The node does not answer."))
    assert stopped.outcome is Outcome.WRONG


def test_judge__of_an_index_that_is_behind__says_where_it_ended(lab):
    edit(lab, "UPDATE cursor SET number = number - 1, hash = (SELECT hash FROM block ORDER BY number DESC LIMIT 1, 1)")
    verdict = lab.judge()
    assert verdict.outcome is Outcome.WRONG
    assert verdict.why.startswith("ended at")


def test_judge__of_a_cursor_on_no_chain__says_so(lab):
    edit(lab, "UPDATE cursor SET hash = '0x" + "ab" * 32 + "'")
    verdict = lab.judge(UnavailableError("The node does not answer."))
    assert verdict.why.startswith("its block")


@pytest.mark.parametrize("error", [ValueError("Anything else than one of ours."), BadAnswerError("oh")])
def test_judge__of_an_end_without_a_sentence__is_wrong(lab, error):
    assert lab.judge(error).outcome is Outcome.WRONG


def test_judge__of_an_end_with_a_sentence__is_stopped(lab):
    assert lab.judge(UnavailableError("The node does not answer; is it running?")).outcome is Outcome.STOPPED
