"""One writer: the lock of real processes on both databases, what it says of its holder, and the hand-over."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexer.errors import LockedError, StoreError
from indexer.store.database import open_locked, open_store
from indexer.store.lock import Holder, parse_note, this_process
from indexer.store.writer import open_writer

HOLD = """
import sys
from indexer.store.database import open_locked
with open_locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
NOTES = [
    "", "counterfoil 999999999 2026-01-01T00:00:00+00:00 {host}", "counterfoil 12 yesterday {host}", "-1", "\x1b[2J",
    "x" * 100_000,
]  # fmt: skip


@contextmanager
def holder(database):
    """Another process that writes until its input ends."""
    command = [sys.executable, "-c", HOLD, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@contextmanager
def bare_lock(path):
    """The operating system's lock alone, without a note; gives its file."""
    lock = Path(f"{path}.lock")
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield lock


def locked(database):
    with pytest.raises(LockedError) as caught, open_locked(database):
        pass
    return caught.value


def test_open_locked__held_by_another_process__names_it_and_the_ways_out(database):
    with holder(database) as other:
        error = locked(database)
    assert error.holder.startswith(f"process {other.pid} on {this_process().host}, since 20")
    words = str(error)
    assert words.startswith("Another process writes to the index at ")
    assert f" ({error.holder}): stop it, stand by for it with `counterfoil index run --follow --wait`, " in words
    assert words.endswith("COUNTERFOIL_DATABASE.")


@pytest.mark.parametrize("how", ["in order", "killed"])
def test_open_locked__once_its_holder_is_gone__is_free(database, how):
    with holder(database) as other:
        if how == "killed":
            other.send_signal(signal.SIGKILL)
            other.wait(20)
        else:
            other.communicate("", timeout=20)
    with open_locked(database):
        assert locked(database).holder.startswith(f"process {os.getpid()} on ")


def test_open_locked__with_patience__takes_over_when_the_holder_ends(database):
    seen = []
    with holder(database) as other:

        def wait(error):
            seen.append(error.holder.split(" on ")[0])
            other.communicate("", timeout=20)
            return True

        with open_locked(database, wait):
            assert locked(database).holder.startswith(f"process {os.getpid()} on ")
    assert seen == [f"process {other.pid}"]


def test_open_locked__left_by_an_exception__is_free(database):
    with pytest.raises(ZeroDivisionError), open_locked(database):
        raise ZeroDivisionError
    with open_locked(database):
        pass


def test_open_store__for_questions__needs_no_lock(database):
    with open_locked(database), open_store(database) as store:
        assert store.label


# --- a file


@pytest.mark.parametrize("note", NOTES, ids=range(len(NOTES)))
def test_open_locked__with_a_note_that_cannot_be_the_holders__names_nobody(sqlite_database, note):
    """A killed process leaves its note behind, and anybody may write into the file."""
    with bare_lock(sqlite_database) as lock:
        lock.write_text(note.format(host=this_process().host))
        error = locked(sqlite_database)
    assert error.holder == ""
    assert str(error).startswith(f"Another process writes to the index at {sqlite_database}: stop it, ")


def test_open_locked__in_order__notes_its_process_and_takes_the_note_back(sqlite_database):
    lock = Path(f"{sqlite_database}.lock")
    with open_locked(sqlite_database):
        assert parse_note(lock.read_text()).pid == os.getpid()
        locked(sqlite_database)
        assert parse_note(lock.read_text()).pid == os.getpid()
    assert lock.read_text() == ""


def test_open_locked__with_patience_at_its_end__raises(sqlite_database):
    asked = []
    with (
        bare_lock(sqlite_database),
        pytest.raises(LockedError),
        open_locked(sqlite_database, lambda error: asked.append(error) or len(asked) < 3),
    ):
        pass
    assert len(asked) == 3


def test_open_locked__in_threads__is_held_by_one_at_a_time(sqlite_database):
    holding, most, never = [], [], threading.Event()

    def work():
        with open_locked(sqlite_database, lambda _: not never.wait(0.001)):
            holding.append(1)
            most.append(len(holding))
            holding.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1] * 8


def test_open_locked__where_no_file_can_be_made__says_what_to_do(tmp_path):
    (tmp_path / "index.sqlite.lock").mkdir()
    with (
        pytest.raises(StoreError, match=r"lock file .* cannot be opened .*COUNTERFOIL_DATABASE"),
        open_locked(tmp_path / "index.sqlite"),
    ):
        pass


def test_open_writer__while_another_process_writes__touches_nothing(sqlite_database, chain):
    """A newer program must not change the tables under the hands of the one that writes."""
    with bare_lock(sqlite_database), pytest.raises(LockedError), open_writer(sqlite_database, chain.deployment()):
        pass
    assert not sqlite_database.exists()


def test_open_writer__of_a_database_of_another_kind__leaves_no_file_behind(chain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(StoreError, match="neither SQLite nor PostgreSQL"),
        open_writer("mysql://host/name", chain.deployment()),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["a", "db-1.example"])
def test_parse_note__of_what_a_holder_noted__gives_it_back(host):
    holder = Holder(7, host, this_process().since)
    assert parse_note(holder.note()) == holder


def test_holders_note__with_the_longest_values__fits_the_name_of_a_session():
    holder = Holder(999_999_999, "h" * 15, this_process().since)
    assert parse_note(holder.note()) == holder
