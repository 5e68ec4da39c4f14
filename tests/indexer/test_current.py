"""The current rows that a writer keeps from one range to the next."""

import pytest
from sqlalchemy import event

from indexer import events as ev
from indexer.source import Source
from indexer.store import writer as writing
from tests.indexer.model import Node, listed, load, registered
from tests.indexer.traffic import assert_same_as_clean, busy_chain, grow


@pytest.fixture
def chain():
    return busy_chain()


def rows_read(writer, work):
    """Count the questions after current rows that some work asks of the database."""
    asked = []

    def note(_connection, _cursor, statement, *_):
        if statement.startswith("SELECT") and "valid_to IS NULL" in statement:
            asked.append(statement)

    event.listen(writer.store.engine, "before_cursor_execute", note)
    work()
    event.remove(writer.store.engine, "before_cursor_execute", note)
    return len(asked)


def append_new_price(writer, chain, price):
    chain.append(ev.PriceChanged(1, price))
    load(writer, chain, first=chain.head)


def test_append__of_blocks_that_touch_rows_of_the_range_before__reads_none_of_them_again(writer, chain, tmp_path):
    load(writer, chain)
    assert rows_read(writer, lambda: append_new_price(writer, chain, 20)) == 0
    assert_same_as_clean(writer, chain, tmp_path)


def test_append__where_more_rows_were_touched_than_are_kept__reads_them_again(writer, chain, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_ROWS_KEPT", 3)
    load(writer, chain)
    assert rows_read(writer, lambda: append_new_price(writer, chain, 20)) > 0
    assert_same_as_clean(writer, chain, tmp_path)


def test_append__after_one_that_failed_in_the_middle__has_the_rows_of_a_clean_index(
    writer, chain, tmp_path, monkeypatch
):
    load(writer, chain)
    chain.append(ev.PriceChanged(1, 21), *registered(77), listed(77, 77))

    def fail(*_):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(writing, "_move_cursor", fail)
        with pytest.raises(RuntimeError):
            load(writer, chain, first=chain.head)
    load(writer, chain, first=chain.head)
    append_new_price(writer, chain, 22)
    assert_same_as_clean(writer, chain, tmp_path)


def test_append__after_a_reorg__goes_on_from_the_new_branch(writer, chain, tmp_path):
    load(writer, chain)
    append_new_price(writer, chain, 20)
    chain.rewind(chain.head - 3)
    ancestor = chain.head
    grow(chain, 4, start=700)
    fetched = Source(Node(chain), writer.deployment).fetch(ancestor + 1, chain.head)
    writer.replace_from(ancestor, fetched.headers, fetched.logs, None)
    append_new_price(writer, chain, 22)
    assert_same_as_clean(writer, chain, tmp_path)


def test_rebuild__after_rows_were_kept__reads_the_database(writer, chain, tmp_path):
    load(writer, chain)
    writer.rebuild()
    append_new_price(writer, chain, 20)
    assert_same_as_clean(writer, chain, tmp_path)
