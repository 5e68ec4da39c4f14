"""The store: columns, transactions, rollbacks (law 2), locks, rebuilding."""

import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, Table, func, insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from indexer import events as ev
from indexer import query, rows
from indexer.decode import UNKNOWN_EVENT
from indexer.errors import LockedError, StoreError, StoreUnavailableError
from indexer.project import PlacedEvent, fold_block
from indexer.source import Source
from indexer.store import writer as writing
from indexer.store.bulk import insert_rows
from indexer.store.compare import examine
from indexer.store.database import database_url, open_locked, open_store
from indexer.store.tables import METADATA, table_of
from indexer.store.types import Uint256
from indexer.store.writer import open_writer, roll_back
from tests.indexer.conftest import everything
from tests.indexer.model import (
    ADDRESSES,
    CLIENT,
    Chain,
    MemoryState,
    Node,
    attested,
    disputed,
    encoded,
    listed,
    load,
    opened,
    other_chain,
    rated,
    registered,
    resolved,
    settled,
)

# --- columns


@pytest.fixture
def engine(writer):
    return writer.store.engine


AMOUNTS = st.integers(0, 2**256 - 1) | st.sampled_from([0, 2**63 - 1, 2**63, 2**64, 10**77, 2**256 - 1])


@given(st.lists(AMOUNTS, min_size=1, unique=True))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_uint256__in_a_database__keeps_value_and_order(engine, numbers):
    table = Table("amount", MetaData(), Column("amount", Uint256), prefixes=["TEMPORARY"])
    with engine.connect() as connection:
        table.create(connection)
        insert_rows(connection, table, ["amount"], [(number,) for number in numbers[::2]])
        if numbers[1::2]:
            connection.execute(insert(table), [{"amount": number} for number in numbers[1::2]])
        found = connection.execute(select(table.c.amount).order_by(table.c.amount)).scalars().all()
        above = connection.execute(select(func.count()).where(table.c.amount >= numbers[0])).scalar_one()
    assert found == sorted(numbers)
    assert above == sum(number >= numbers[0] for number in numbers)


@pytest.mark.parametrize("number", [-1, 2**256])
def test_uint256__outside_its_range__is_refused(number):
    with pytest.raises(ValueError, match="outside of a uint256"):
        Uint256().process_bind_param(number, None)


def test_tables__in_postgresql__declare_numeric_and_bigint():
    sql = str(CreateTable(METADATA.tables["node_stake"]).compile(dialect=postgresql.dialect()))
    assert "stake NUMERIC(78, 0) NOT NULL" in sql
    assert "node_id BIGINT NOT NULL" in sql


@pytest.mark.parametrize("row_type", [*rows.VERSIONED, *rows.FACTS])
def test_tables__beside_the_row_types__have_the_same_columns(row_type):
    columns = set(table_of(row_type).c.keys())
    place = {"valid_from", "valid_to"} if issubclass(row_type, rows.Versioned) else {"valid_from", "log_index"}
    assert columns == set(rows.columns_of(row_type)) | place


# --- versions and rollbacks


def versions(store, name):
    table = METADATA.tables[name]
    with store.read() as connection:
        return connection.execute(select(table).order_by(table.c.valid_from)).mappings().all()


def test_append__of_changes_in_one_range_and_the_next__closes_the_version_before(writer, chain):
    chain.append(*registered(1), listed(1, 1))
    chain.append(ev.PriceChanged(1, 20))
    load(writer, chain)
    chain.append(ev.PriceChanged(1, 30))
    load(writer, chain, first=4)
    assert [(row["valid_from"], row["valid_to"], row["price"]) for row in versions(writer.store, "service")] == [
        (2, 3, 10),
        (3, 4, 20),
        (4, None, 30),
    ]


def test_roll_back__to_a_block__deletes_later_versions_and_reopens_the_one_before(writer, chain):
    chain.append(*registered(1), listed(1, 1))
    chain.append(ev.PriceChanged(1, 20), opened(1))
    chain.append(ev.PriceChanged(1, 30), rated(1))
    load(writer, chain)
    with writer.store.write() as connection:
        roll_back(connection, 2)
    assert [(row["valid_from"], row["valid_to"], row["price"]) for row in versions(writer.store, "service")] == [
        (2, None, 10)
    ]
    left = everything(writer.store)
    assert left["session"] == left["rating"] == []
    assert [row[0] for row in left["block"]] == [1, 2]


def sample_events(number):
    return st.sampled_from(
        [
            ev.PriceChanged(1, number % 7),
            ev.ServiceStatusChanged(1, active=bool(number % 2)),
            ev.StakeChanged(1, number * 10**30, number, 0),
            ev.CapabilityChanged(1, f"cap-{number % 3}", enabled=bool(number % 2)),
            ev.EndpointChanged(2, f"http://{number % 4}"),
            opened(number),
            opened(number, node_id=2),
            settled(number - 1),
            settled(number - 2, node_id=2),
            ev.Credited(CLIENT, number),
            ev.CreditWithdrawn(CLIENT, CLIENT, 3),
            rated(number, paid=number % 3),
            attested(number),
            disputed(max(0, number - 2)),
            resolved(max(0, number - 3), status=2 + number % 3, award=number),
            ev.CourtCredited(CLIENT, number),
            ev.CourtWithdrawn(CLIENT, CLIENT, 2),
        ]
    )


@st.composite
def histories(draw):
    """Steps: a list of events is a block, a number is a rollback by that many blocks."""
    steps = []
    for number in range(draw(st.integers(3, 14))):
        rollback = number > 2 and draw(st.integers(0, 3)) == 0
        steps.append(draw(st.integers(1, 4)) if rollback else draw(st.lists(sample_events(number), max_size=5)))
    return steps


@given(histories(), st.integers(1, 4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_writer__over_blocks_and_rollbacks__holds_what_a_clean_fold_holds(
    new_database, tmp_path_factory, history, range_size
):
    folder = tmp_path_factory.mktemp("histories")
    chain = Chain()
    chain.append(*registered(1), *registered(2), listed(1, 1), listed(2, 2))
    with new_database() as place, open_writer(place, chain.deployment()) as lived:
        load(lived, chain)
        for step in history:
            if isinstance(step, int):
                _reorganise(chain, lived, step)
            else:
                chain.append(*step)
                load(lived, chain, first=chain.head)
        with open_writer(folder / "clean.sqlite", chain.deployment()) as clean:
            for first in range(1, chain.head + 1, range_size):
                load(clean, chain, first, min(chain.head, first + range_size - 1))
            assert everything(lived.store) == everything(clean.store)
            found = examine(lived.store, clean.store)
            assert (found.last_block, found.differs_at) == (chain.head, None)
        before = everything(lived.store)
        lived.rebuild()
        assert everything(lived.store) == before
        _check_against_reference(chain, lived.store)


def _reorganise(chain, writer, depth):
    ancestor = max(1, chain.head - depth)
    chain.rewind(ancestor)
    chain.append(ev.PriceChanged(1, 1000 + depth))
    fetched = Source(Node(chain), writer.deployment).fetch(ancestor + 1, chain.head)
    writer.replace_from(ancestor, fetched.headers, fetched.logs, None)


def _check_against_reference(chain, store):
    """Ask for every block: the answers are what a fold over a dictionary holds there."""
    state = MemoryState()
    for block in chain.blocks[1:]:
        placed = [PlacedEvent(index, event) for index, event in enumerate(block["events"])]
        state.apply(fold_block(block["number"], placed, state))
        _check_block(store, block, state)


def _check_block(store, block, state):
    services = query.services(store, at=block["number"])
    assert services.as_of.hash == block["hash"]
    assert [
        (row.price, row.active, row.stake, row.active_sessions, row.rating_sum, row.max_concurrent)
        for row in services.value.items
    ] == [
        (
            service.price,
            service.active,
            stake.stake,
            state.get(rows.NodeLoad, (service.node_id,)).active_sessions,
            state.get(rows.NodeReputation, (service.node_id,)).rating_sum,
            stake.stake // 500,
        )
        for service in of_type(state, rows.Service)
        for stake in [state.get(rows.NodeStake, (service.node_id,))]
    ]
    sessions = query.sessions(store, at=block["hash"]).value.items
    assert list(sessions) == sorted(of_type(state, rows.Session), key=lambda row: row.number)
    credit = state.get(rows.Credit, (CLIENT,))
    assert query.credit_of(store, CLIENT, block["number"]).value == (credit.amount if credit else 0)


def of_type(state, row_type):
    return [row for _, row in sorted(state.rows.items(), key=lambda item: repr(item[0])) if type(row) is row_type]


# --- hostile text


def test_append__of_texts_that_clean_to_the_same__does_not_collide(writer, chain):
    chain.append(*registered(1), listed(1, 1))
    logs = []
    for raw in (b"\xff", b"\xfe", b"a\x00"):
        topics, data = encoded(attested(1, tool="?" * len(raw)))
        logs.append(
            (ADDRESSES["ExperienceLedger"], topics, data.replace((b"?" * len(raw)).hex() + "00", raw.hex() + "00"))
        )
    chain.append(logs=logs)
    load(writer, chain)
    tools = [item.fact.tool for item in query.experience_of(writer.store, service_id=1).value.items]
    assert tools == ["\ufffd", "\ufffd", "a\ufffd"]


HOSTILE = [
    b"\xff\xfe", b"a\x00b", b"\xed\xa0\x80", b"\xc3", b"\\N\t\n\r\\.", b"'; DROP TABLE node --", b'"{}%s:x$1',
    "\u202e\u0000\uffff\U0001f4a5 e\u0301".encode(), b"x" * 1024, b" ", b"",
]  # fmt: skip


def with_text(event, field, raw):
    """An event's log in which a text of it is any bytes."""
    mark = b"?" * len(raw)
    topics, data = encoded(replace(event, **{field: mark.decode()}))
    return topics, data.replace(mark.hex(), raw.hex()) if raw else data


@pytest.mark.parametrize("raw", HOSTILE)
def test_append__of_hostile_text__is_read_back_as_the_decoder_cleaned_it(writer, chain, raw):
    chain.append(*registered(1), listed(1, 1), opened(1))
    parts = [
        ("NodeRegistry", ev.EndpointChanged(1, ""), "endpoint"),
        ("NodeRegistry", ev.MetadataChanged(1, ""), "metadata_uri"),
        ("NodeRegistry", ev.CapabilityChanged(1, "", enabled=True), "capability"),
        ("ExperienceLedger", attested(1), "note"),
    ]
    chain.append(logs=[(ADDRESSES[name], *with_text(event, field, raw)) for name, event, field in parts])
    load(writer, chain)
    cleaned = raw.decode("utf-8", "replace").replace("\x00", "\ufffd")
    assert query.quarantined(writer.store).value.items == ()
    node = query.node(writer.store, 1).value
    assert (node.endpoint, node.capabilities) == (cleaned, (cleaned,))
    assert query.service(writer.store, 1).value.metadata_uri == cleaned
    assert query.experience_of(writer.store, service_id=1).value.items[0].fact.note == cleaned
    before = everything(writer.store)
    writer.rebuild()
    assert everything(writer.store) == before


def test_append__of_a_text_of_ten_kilobytes__quarantines_the_log_and_keeps_it_raw(writer, chain):
    chain.append(*registered(1))
    raw = bytes(range(256)) * 40
    topics, data = with_text(ev.EndpointChanged(1, ""), "endpoint", raw)
    chain.append(logs=[(ADDRESSES["NodeRegistry"], topics, data)])
    load(writer, chain)
    (kept,) = query.quarantined(writer.store).value.items
    assert (kept.block, kept.log_index, kept.reason) == (3, 0, "undecodable: a text is longer than 1024 bytes")
    assert raw.hex() in everything(writer.store)["raw_log"][-1][-1]
    assert query.node(writer.store, 1).value.endpoint == "http://node-1"


@pytest.mark.parametrize("amount", [2**63 - 1, 2**63, 2**64, 10**77, 2**256 - 1])
def test_append__of_amounts_beyond_63_bits__are_read_back_and_compared_as_numbers(writer, chain, amount):
    chain.append(*registered(1, stake=amount), *registered(2, stake=999), listed(1, 1, price=amount), listed(2, 2))
    chain.append(opened(1, deposit=amount, max_price=amount), ev.Credited(CLIENT, amount))
    load(writer, chain)
    (candidate,) = query.candidates(writer.store, "data:crypto").value  # "999" sorts above it as text
    assert (candidate.service_id, candidate.price, candidate.stake) == (1, amount, amount)
    assert query.session(writer.store, 1).value.deposit == amount
    assert query.credit_of(writer.store, CLIENT).value == amount


def test_append__of_blocks_with_one_timestamp__keeps_them_apart(writer, chain):
    chain.append(*registered(1), listed(1, 1))
    for price in (20, 30):
        chain.append(ev.PriceChanged(1, price))
        chain.blocks[-1]["timestamp"] = chain.blocks[2]["timestamp"]
    load(writer, chain)
    answers = [query.service(writer.store, 1, block) for block in (2, 3, 4)]
    assert [answer.value.price for answer in answers] == [10, 20, 30]
    assert len({answer.as_of.timestamp for answer in answers}) == 1
    assert len({answer.as_of.hash for answer in answers}) == 3


def test_status__of_unknown_events__counts_them_among_the_quarantined(writer, chain):
    load(writer, chain)
    reasons = [UNKNOWN_EVENT, UNKNOWN_EVENT, "undecodable: the data is not lower-case hex"]
    with writer.store.write() as connection:
        places = [(1, 90 + index, reason) for index, reason in enumerate(reasons)]
        insert_rows(connection, METADATA.tables["quarantine"], ("block_number", "log_index", "reason"), places)
    status = query.status(writer.store).value
    assert (status.quarantined, status.unknown_events) == (3, 2)


def test_append__of_an_undecodable_log__quarantines_it_and_keeps_it_raw(writer, chain):
    chain.append(*registered(1), listed(1, 1))
    topics, _ = encoded(ev.PriceChanged(1, 5))
    chain.append(ev.PriceChanged(1, 20), logs=[(ADDRESSES["NodeRegistry"], topics, "0x01")])
    load(writer, chain)
    (bad,) = query.quarantined(writer.store).value.items
    assert (bad.block, bad.log_index) == (3, 1)
    assert bad.reason == "undecodable: the data is shorter than the event's arguments"
    assert query.service(writer.store, 1).value.price == 20
    assert query.status(writer.store).value.quarantined == 1
    assert query.status(writer.store).value.raw_logs == 6 + 3 + 2


# --- one transaction


def test_append__that_fails_at_its_end__leaves_nothing(writer, chain, monkeypatch):
    chain.append(*registered(1), listed(1, 1))
    load(writer, chain)
    before = everything(writer.store), writer.cursor()
    chain.append(ev.PriceChanged(1, 20))

    def fail(*_):
        raise RuntimeError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(writing, "_move_cursor", fail)
        with pytest.raises(RuntimeError, match="the disk is gone"):
            load(writer, chain, first=3)
    assert (everything(writer.store), writer.cursor()) == before
    load(writer, chain, first=3)
    assert query.service(writer.store, 1).value.price == 20


DIES = """
import os, sys
from contextlib import closing, contextmanager
from pathlib import Path
from indexer.source import Source
from indexer.store import writer as writing
from indexer import events as ev
from tests.indexer.model import Chain, Node, listed, registered
chain = Chain()
chain.append(*registered(1), listed(1, 1))
with writing.open_writer(sys.argv[1], chain.deployment()) as opened:
    source = Source(Node(chain), opened.deployment)
    first = source.fetch(1, 2)
    opened.append(first.headers, first.logs, None)
    chain.append(ev.PriceChanged(1, 77))
    writing._move_cursor = lambda *_: os._exit(9)
    second = source.fetch(3, 3)
    opened.append(second.headers, second.logs, None)
"""


def test_append__killed_in_its_transaction__leaves_the_block_before_and_no_lock(database, chain, tmp_path):
    chain.append(*registered(1), listed(1, 1))
    root = Path(__file__).resolve().parents[2]
    ended = subprocess.run([sys.executable, "-c", DIES, str(database)], cwd=root, check=False, timeout=60)
    assert ended.returncode == 9
    with open_writer(database, chain.deployment()) as writer:
        assert writer.cursor().number == 2
        chain.append(ev.PriceChanged(1, 78))
        load(writer, chain, first=3)
        with open_writer(tmp_path / "clean.sqlite", chain.deployment()) as clean:
            load(clean, chain)
            assert everything(writer.store) == everything(clean.store)


def test_read__while_a_writer_writes__sees_one_snapshot(writer, chain):
    chain.append(*registered(1), listed(1, 1))
    load(writer, chain)
    chain.append(ev.PriceChanged(1, 20))
    table = METADATA.tables["service"]
    with writer.store.read() as reading:
        before = reading.execute(select(func.count()).select_from(table)).scalar_one()
        load(writer, chain, first=3)
        assert reading.execute(select(func.count()).select_from(table)).scalar_one() == before == 1
    assert len(versions(writer.store, "service")) == 2


def hurry(store):
    """Let the writer wait no longer for others than this test can."""
    if store.engine.dialect.name == "postgresql":
        connection = store.lock.connection()
        connection.exec_driver_sql("SET lock_timeout = '20ms'")
        connection.commit()
        return
    with store.engine.connect() as waiting:
        waiting.exec_driver_sql("COMMIT")
        waiting.exec_driver_sql("PRAGMA busy_timeout=0")
        waiting.exec_driver_sql("BEGIN")


@contextmanager
def held_by_another(store):
    """Another program holds the tables."""
    if store.engine.dialect.name == "postgresql":
        with store.engine.connect() as other:
            other.exec_driver_sql("LOCK TABLE block IN EXCLUSIVE MODE")
            yield
        return
    with closing(sqlite3.connect(store.engine.url.database)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_append__to_a_database_that_another_program_holds__is_a_sentence_and_changes_nothing(writer, chain):
    load(writer, chain)
    before = everything(writer.store)
    chain.append(*registered(1))
    hurry(writer.store)
    with (
        held_by_another(writer.store),
        pytest.raises(StoreUnavailableError, match=r"locked or does not answer.*no other program holds the database"),
    ):
        load(writer, chain, first=2)
    assert everything(writer.store) == before
    load(writer, chain, first=2)
    assert writer.cursor().number == 2


# --- locks, identity, opening


def test_open_writer__beside_another__is_refused_with_a_sentence(writer, database, chain):
    with (
        pytest.raises(LockedError, match=r"Another process writes to the index at .*stop it"),
        open_writer(database, chain.deployment()),
    ):
        pass


def test_open_writer__after_the_first_has_closed__is_allowed(database, chain):
    for _ in range(2):
        with open_writer(database, chain.deployment()) as writer:
            assert writer.cursor() is None


def test_open_writer__for_another_deployment__names_what_differs(database, chain):
    with open_writer(database, chain.deployment()):
        pass
    with (
        pytest.raises(StoreError, match=r"another deployment \(block_hash.*move it away"),
        open_writer(database, other_chain().deployment()),
    ):
        pass


def test_open_store__of_a_missing_file__says_how_to_build_it(sqlite_database):
    with pytest.raises(StoreError, match=r"no index at .*counterfoil index run"):
        open_store(sqlite_database)
    assert not sqlite_database.exists()


def test_open_store__of_a_database_without_tables__says_how_to_build_it(postgresql):
    with postgresql.empty() as url, pytest.raises(StoreError, match=r"no index at .*counterfoil index run"):
        open_store(url)


@pytest.mark.parametrize("opened", [open_store, open_locked])
def test_open_store__of_a_file_that_is_no_database__says_so(sqlite_database, opened):
    sqlite_database.write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    with pytest.raises(StoreError, match=r"not a database.*check COUNTERFOIL_DATABASE"), opened(sqlite_database):
        pass


@pytest.mark.parametrize("given", ["sqlite://", "sqlite:///:memory:", "://"])
def test_database_url__of_nothing_that_can_be_shared__is_refused(given):
    with pytest.raises(StoreError, match="COUNTERFOIL_DATABASE"):
        database_url(given)


def test_database_url__of_postgresql__names_the_driver_and_hides_the_password():
    url = database_url("postgresql://user:secret@host/name")
    assert url.drivername == "postgresql+psycopg"
    with pytest.raises(StoreError) as caught:
        open_store("postgresql://user:secret@127.0.0.1:1/name")
    assert "secret" not in str(caught.value)


def test_open_store__by_path_and_by_url__is_the_same(sqlite_database, chain):
    with open_writer(sqlite_database, chain.deployment()) as writer:
        load(writer, chain)
        for place in (sqlite_database, str(sqlite_database), f"sqlite:///{sqlite_database}"):
            with open_store(place) as store:
                assert query.as_of(store).block == 1
    assert Path(f"{sqlite_database}.lock").exists()
