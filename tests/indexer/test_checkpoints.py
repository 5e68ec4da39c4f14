"""SQLite's log of writes: a thread moves it into the file, and nothing hangs on that thread."""

import shutil
import sqlite3
import threading
import time
from contextlib import closing
from functools import partial

import pytest

from indexer.store import checkpoints
from indexer.store.checkpoints import running_checkpoints
from indexer.store.writer import open_writer
from tests.indexer.model import listed, load, registered

PATIENCE = 20
"""Seconds after which a test fails that waits for the thread."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.sqlite"


@pytest.fixture
def written(path):
    """A connection to a database in whose log a row waits that is not in the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE kept (value)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO kept VALUES (1)")
        yield connection


def rows_in_the_file_alone(path):
    alone = path.with_suffix(".alone")
    shutil.copyfile(path, alone)
    with closing(sqlite3.connect(alone)) as connection:
        return connection.execute("SELECT count(*) FROM kept").fetchone()[0]


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.usefixtures("written")
def test_wrote__of_many_rows__has_the_log_moved_into_the_file(path):
    with running_checkpoints(str(path)) as running:
        running.wrote(checkpoints._ROWS - 1)
        assert rows_in_the_file_alone(path) == 0
        running.wrote(1)
        wait_until(lambda: rows_in_the_file_alone(path) == 1)


def test_wrote__while_another_transaction_writes__moves_what_is_committed(path, written):
    written.execute("BEGIN IMMEDIATE")
    written.execute("INSERT INTO kept VALUES (2)")
    with running_checkpoints(str(path)) as running:
        running.wrote(checkpoints._ROWS)
        wait_until(lambda: rows_in_the_file_alone(path) == 1)
    written.execute("ROLLBACK")
    assert written.execute("SELECT count(*) FROM kept").fetchone() == (1,)


def test_running_checkpoints__of_what_is_no_database__disturbs_nobody(path):
    path.write_bytes(b"no database at all" * 100)
    with running_checkpoints(str(path)) as running:
        running.wrote(checkpoints._ROWS)


def test_open_writer__where_the_system_gives_no_thread__writes_all_the_same(path, chain, monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    chain.append(*registered(1), listed(1, 1))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with open_writer(path, chain.deployment()) as writer:
            load(writer, chain)
            assert writer.cursor().number == chain.head


def test_open_writer__once_closed__leaves_no_thread_and_no_log(path, chain):
    chain.append(*registered(1), listed(1, 1))
    with open_writer(path, chain.deployment()) as writer:
        assert "checkpoints" in {thread.name for thread in threading.enumerate()}
        load(writer, chain)
    assert "checkpoints" not in {thread.name for thread in threading.enumerate()}
    assert not path.with_name(path.name + "-wal").exists()


def test_wrote__after_a_checkpoint_that_failed__tries_again(path, written, monkeypatch):
    failures = []

    class Connection(sqlite3.Connection):
        def execute(self, statement, *more):
            if "checkpoint" in statement and not failures:
                failures.append(statement)
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(statement, *more)

    monkeypatch.setattr(checkpoints.sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    with running_checkpoints(str(path)) as running:
        running.wrote(checkpoints._ROWS)
        wait_until(lambda: failures)
        running.wrote(checkpoints._ROWS)
        monkeypatch.undo()
        wait_until(lambda: rows_in_the_file_alone(path) == 1)


def test_end__between_a_look_and_a_clearing__is_heard(path, written):
    running = checkpoints.Checkpoints(str(path))

    class Event(threading.Event):
        def clear(self):
            running.end()
            super().clear()

    running._due = Event()
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    running.wrote(checkpoints._ROWS)
    thread.join(PATIENCE)
    assert not thread.is_alive()
