"""PostgreSQL as it fails: lost sessions, restarts, limits of time, other schemas. Rows stay those of some block."""

from contextlib import contextmanager

import pytest
from sqlalchemy import text

from indexer import events as ev
from indexer import query
from indexer.errors import ForkError, LockedError, StoreError, StoreUnavailableError, TooSlowError
from indexer.notices import Retried, Stepped
from indexer.store import database as opening
from indexer.store import writer as writing
from indexer.store.bulk import insert_rows
from indexer.store.database import database_url, open_store
from indexer.store.tables import QUARANTINE
from indexer.store.writer import open_writer
from indexer.sync import SyncOptions, run_once
from tests.indexer.conftest import clean_index, everything
from tests.indexer.model import Chain, Node, listed, registered
from tests.indexer.test_store import load
from tests.support.postgres import postgres

PATIENT = SyncOptions(first_range=3, max_range=3, first_pause=0.2, longest_pause=0.5, attempts=20)


@pytest.fixture
def url(postgresql):
    with postgresql.index() as made:
        yield made


@pytest.fixture
def chain():
    made = Chain()
    made.append(*registered(1), listed(1, 1))
    for price in range(20):
        made.append(ev.PriceChanged(1, price + 20))
    return made


@pytest.fixture
def writer(url, chain):
    with open_writer(url, chain.deployment()) as opened:
        yield opened


def end_session(postgresql, writer):
    """What an operator, a crash of the session's process or a cut line does to the session that holds the lock."""
    pid = writer.store.lock.connection().connection.dbapi_connection.info.backend_pid
    postgresql.run(f"SELECT pg_terminate_backend({pid}, 5000)")


# --- the session that writes


def test_append__after_its_session_was_ended__fails_once_and_goes_on_with_the_lock(postgresql, writer, chain, url):
    load(writer, chain, last=5)
    end_session(postgresql, writer)
    with pytest.raises(StoreUnavailableError, match="terminating connection"):
        load(writer, chain, first=6)
    assert writer.cursor().number == 5
    load(writer, chain, first=6)
    assert writer.cursor().number == chain.head
    with pytest.raises(LockedError), open_writer(url, chain.deployment()):
        pass


def test_append__whose_session_is_ended_before_it_commits__writes_nothing(postgresql, writer, chain, monkeypatch):
    load(writer, chain, last=5)
    before = everything(writer.store)

    def end_and_move(connection, *rest):
        end_session(postgresql, writer)
        move(connection, *rest)

    move = writing._move_cursor
    with monkeypatch.context() as patched:
        patched.setattr(writing, "_move_cursor", end_and_move)
        with pytest.raises(StoreUnavailableError):
            load(writer, chain, first=6)
    assert (everything(writer.store), writer.cursor().number) == (before, 5)
    load(writer, chain, first=6)


def test_append__after_another_took_over_the_lock__is_refused(postgresql, writer, chain, url):
    load(writer, chain, last=5)
    end_session(postgresql, writer)
    with open_writer(url, chain.deployment()) as other:
        load(other, chain, first=6, last=8)
        for refusal in (StoreUnavailableError, LockedError):
            with pytest.raises(refusal):
                load(writer, chain, first=6)
        assert other.cursor().number == 8


def test_append__to_an_index_that_another_moved_on_in_between__sees_it_in_its_transaction(
    postgresql, writer, chain, url
):
    load(writer, chain, last=5)
    end_session(postgresql, writer)
    with open_writer(url, chain.deployment()) as other:
        load(other, chain, first=6, last=8)
        moved = everything(other.store)
    with pytest.raises(StoreUnavailableError):
        load(writer, chain, first=6)
    with pytest.raises(ForkError, match="Block 6 does not follow the index's newest block 8"):
        load(writer, chain, first=6)
    assert everything(writer.store) == moved
    load(writer, chain, first=9)


def test_run_once__whose_session_is_ended_again_and_again__has_the_rows_of_a_clean_index(
    postgresql, writer, chain, tmp_path
):
    told = []

    def observe(notice):
        if isinstance(notice, Stepped):
            end_session(postgresql, writer)
        if isinstance(notice, Retried):
            told.append(type(notice.error))

    run_once(writer, Node(chain), options=PATIENT, observer=observe)
    assert set(told) == {StoreUnavailableError}
    assert len(told) > 3
    with clean_index(tmp_path / "clean.sqlite", chain.deployment(), Node(chain)) as clean:
        assert everything(writer.store) == everything(clean.store)


# --- the server


@pytest.fixture(scope="module")
def own_server():
    with postgres() as server:
        yield server


@contextmanager
def restarted(server):
    server.stop()
    try:
        yield
    finally:
        server.start()


def test_run_once__through_a_restart_of_the_server__waits_and_goes_on(own_server, chain, tmp_path):
    told = []

    def observe(notice):
        if isinstance(notice, Stepped) and notice.cursor.number < chain.head and not told:
            own_server.stop()
        if isinstance(notice, Retried):
            told.append(type(notice.error))
            if len(told) == 2:
                own_server.start()

    with own_server.index() as url, open_writer(url, chain.deployment()) as writer:
        run_once(writer, Node(chain), options=PATIENT, observer=observe)
        assert set(told) == {StoreUnavailableError}
        assert query.status(writer.store).value.addresses == chain.deployment().addresses()
        with clean_index(tmp_path / "clean.sqlite", chain.deployment(), Node(chain)) as clean:
            assert everything(writer.store) == everything(clean.store)


def test_run_once__with_a_server_that_stays_away__ends_with_a_sentence_and_half_writes_nothing(
    own_server, chain, tmp_path
):
    written = [None]

    def stop(notice):
        if isinstance(notice, Stepped) and len(written) == 1:
            written.append(notice.cursor.number)
            own_server.stop()

    options = SyncOptions(first_range=3, max_range=3, first_pause=0, longest_pause=0, attempts=3)
    with own_server.index() as url:
        with open_writer(url, chain.deployment()) as writer:
            with pytest.raises(StoreUnavailableError, match=r"does not answer .*: see that it runs"):
                run_once(writer, Node(chain), options=options, observer=stop)
            own_server.start()
        with open_writer(url, chain.deployment()) as writer:
            cursor = writer.cursor()
            # A server that is stopped at once may lose the last range, which the chain gives again, but no half of it.
            assert (cursor and cursor.number) in written
            run_once(writer, Node(chain), options=options)
            with clean_index(tmp_path / "clean.sqlite", chain.deployment(), Node(chain)) as clean:
                assert everything(writer.store) == everything(clean.store)


def test_read__after_a_restart_of_the_server__answers_again(own_server, chain):
    with own_server.index() as url, open_writer(url, chain.deployment()) as writer:
        load(writer, chain)
        own_server.run("CHECKPOINT")  # the newest range is on disk only some moments after its commit
        with open_store(url) as store:
            assert query.service(store, 1).value.price == 39
            with restarted(own_server), pytest.raises(StoreUnavailableError, match="does not answer"):
                query.service(store, 1)
            assert query.service(store, 1).value.price == 39


# --- limits of time


def test_read__of_a_statement_that_takes_too_long__is_ended_unless_it_may(url, monkeypatch):
    monkeypatch.setattr(opening, "_READ_SECONDS", 0.05)
    with open_store(url) as store:
        with pytest.raises(TooSlowError, match="statement timeout"), store.read() as connection:
            connection.execute(text("SELECT pg_sleep(20)"))
        with store.read(unbounded=True) as connection:
            connection.execute(text("SELECT pg_sleep(0.2)"))
        with store.read() as connection:
            assert connection.execute(text("SHOW statement_timeout")).scalar() == "50ms"


# --- one database, several indexes


def test_open_writer__in_two_schemas_of_one_database__are_two_indexes(postgresql, chain):
    with postgresql.empty() as url:
        name = url.split("?")[0].rsplit("/", 1)[1]
        postgresql.run("CREATE SCHEMA one; CREATE SCHEMA two", name)
        one, two = (f"{url}&options=-csearch_path%3D{schema}" for schema in ("one", "two"))
        with open_writer(one, chain.deployment()) as first, open_writer(two, chain.deployment()) as second:
            load(first, chain)
            load(second, chain, last=3)
            assert (first.cursor().number, second.cursor().number) == (chain.head, 3)
            with pytest.raises(LockedError), open_writer(two, chain.deployment()):
                pass


# --- what cannot be used


def test_open_store__of_a_database_that_cannot_hold_all_text__says_how_to_make_one(postgresql):
    postgresql.run("CREATE DATABASE plain ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    with pytest.raises(StoreError, match="encoded in SQL_ASCII: create one with ENCODING 'UTF8'"):
        open_store(postgresql.url("plain"))


def test_open_store__of_an_old_server__says_which_is_needed(url, monkeypatch):
    monkeypatch.setattr(opening, "_OLDEST_POSTGRESQL", 99)
    with pytest.raises(StoreError, match="use 99 or newer"):
        open_store(url)


def test_open_store__of_a_server_that_is_not_there__names_the_setting_and_no_password():
    away = "postgresql://me:secret@127.0.0.1:1/index?password=hidden&sslkey=hidden"
    with pytest.raises(StoreError, match=r"Connection refused.*check --against") as caught:
        open_store(away, setting="--against")
    assert "secret" not in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_database_url__with_settings_of_its_own__keeps_them(url):
    with open_store(f"{url}&application_name=mine") as store, store.read() as connection:
        assert connection.execute(text("SHOW application_name")).scalar() == "mine"
    assert database_url(url).drivername == "postgresql+psycopg"


def test_insert_rows__with_a_text_that_no_column_holds__writes_nothing(writer):
    with (
        pytest.raises(StoreError, match=r"NUL|0x00"),
        writer.store.write() as connection,
    ):
        insert_rows(connection, QUARANTINE, ("block_number", "log_index", "reason"), [(1, 0, "fine"), (1, 1, "a\x00")])
    assert everything(writer.store)["quarantine"] == []
