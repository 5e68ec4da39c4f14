"""Reads end when the deadline of whoever asked is over, on both databases."""

import threading

import pytest
from sqlalchemy import text

from indexer import query
from indexer.errors import TooSlowError
from indexer.store.deadline import answering_within, holding, taking_its_time
from tests.indexer.model import load

ENDLESS = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n")
AT_ONCE = 0.05
AMPLE = 60


def test_read__that_goes_on_past_the_deadline__is_ended_with_a_sentence(writer):
    store = writer.store
    with answering_within(AT_ONCE), pytest.raises(TooSlowError, match="ask for less"), store.read() as connection:
        connection.execute(ENDLESS)
    with answering_within(AMPLE), store.read() as connection:
        assert connection.execute(text("SELECT 7")).scalar_one() == 7


def test_read__after_the_deadline__is_refused_before_it_begins(writer, chain):
    load(writer, chain)
    with answering_within(0), pytest.raises(TooSlowError, match="ask for less"):
        query.as_of(writer.store)
    assert query.as_of(writer.store).block == chain.head


def test_read__of_what_everybody_needs__has_no_deadline(writer, chain):
    load(writer, chain)
    with answering_within(0), taking_its_time():
        assert query.as_of(writer.store).block == chain.head


def test_answering_within__inside_of_a_shorter_one__does_not_lengthen_it(writer):
    with answering_within(0), answering_within(AMPLE), pytest.raises(TooSlowError):
        query.as_of(writer.store)


def test_holding__of_a_lock_that_another_holds__ends_with_the_deadline():
    lock = threading.Lock()
    with lock, answering_within(AT_ONCE), pytest.raises(TooSlowError, match="ask for less"), holding(lock):
        pass
    with answering_within(AMPLE), holding(lock):
        assert lock.locked()
    assert not lock.locked()
