"""Revisions of the schema: up from every released version, and the sentences for what cannot be read."""

from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from eth_utils import to_checksum_address
from sqlalchemy import Text, inspect, text

from indexer import query
from indexer.deployment import parse_deployment
from indexer.errors import LockedError, StoreError
from indexer.store import schema
from indexer.store.bulk import insert_rows
from indexer.store.database import Store, open_locked, open_store
from indexer.store.lock import writer_lock
from indexer.store.reader import read_meta
from indexer.store.tables import METADATA, REVISIONS
from indexer.store.writer import open_writer
from tests.indexer.conftest import everything
from tests.indexer.model import CLIENT

DATA = Path(__file__).parent / "data"
HEAD_OF_VERSION_1 = "0x2b14d7f3d6e6e66aec8a5cdb70cf8e5d5a71dcfdae5354c761d53ef2867457b4"


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database(request, tmp_path):
    """A database without tables."""
    if request.param == "sqlite":
        yield tmp_path / "index.sqlite"
        return
    with request.getfixturevalue("postgresql").empty() as url:
        yield url


@contextmanager
def opened_raw(place):
    """The database as it is, whatever its revision."""
    store = open_store.__globals__["_engine"](open_store.__globals__["database_url"](place))
    with Store(store, str(place)) as raw:
        yield raw


@pytest.fixture
def version_1(empty_database):
    """An index of 7 blocks that the program of version 1 made."""
    if isinstance(empty_database, Path):
        with opened_raw(empty_database) as raw, raw.engine.connect() as connection:
            connection.connection.dbapi_connection.executescript((DATA / "version_1.sqlite.sql").read_text())
    else:
        with psycopg.connect(empty_database, autocommit=True) as connection:
            connection.execute((DATA / "version_1.postgresql.sql").read_text())
    return empty_database


def deployment_of(meta):
    """The deployment file's content, as far as an index knows it."""
    entry = {"block": 1, "transaction": meta["genesis_hash"], "arguments": {}, "code_hash": meta["genesis_hash"]}
    contracts = {
        name.removeprefix("address."): entry
        | {"address": to_checksum_address(value), "block_hash": meta[name.replace("address", "block_hash")]}
        for name, value in meta.items()
        if name.startswith("address.")
    }
    chain_id, genesis_hash = int(meta["chain_id"]), meta["genesis_hash"]
    return parse_deployment({"version": 1, "chain_id": chain_id, "genesis_hash": genesis_hash, "contracts": contracts})


def test_open_store__of_a_version_1_index__asks_for_the_upgrade_and_changes_nothing(version_1):
    with pytest.raises(StoreError, match=r"schema revision 1, .* reads 3: run `counterfoil index run` once"):
        open_store(version_1)
    with opened_raw(version_1) as raw, raw.read() as connection:
        assert schema.revision_of(connection) == "1"
        assert not inspect(connection).has_table("alembic_version")


def test_open_locked__upgrades_a_version_1_index_that_then_answers(version_1):
    with open_locked(version_1):
        pass
    with open_store(version_1) as store:
        assert query.as_of(store).hash == HEAD_OF_VERSION_1
        status = query.status(store).value
        assert (status.nodes, status.services, status.sessions, status.quarantined) == (2, 2, 2, 1)
        assert (status.raw_logs, status.raw_logs_from, status.finalized_block) == (28, None, 3)
        (chat,) = query.candidates(store, "text:chat").value
        assert (chat.service_id, chat.price, chat.stake, chat.active_sessions) == (2, 2**128 - 1, 5000, 1)
        assert [query.service(store, 1, block).value.price for block in (2, 6, 7)] == [10, 30, 30]
        assert [query.node(store, 1, block).value.stake for block in (5, 6, 7)] == [5000, 2**128 - 1, 9500]
        assert query.court_credit_of(store, CLIENT).value == 2**255
        (record,) = query.experience_of(store, service_id=1).value.items
        assert record.fact.note == "a\ufffdb é 漢"
        assert query.session(store, 1).value.status == 3


def test_rebuild__of_an_upgraded_index__gives_the_rows_and_digests_of_version_1(version_1):
    """What a block's digest is must not change between versions: indexes of both are compared by it."""
    with open_locked(version_1):
        pass
    with open_store(version_1) as store, store.read() as connection:
        deployment = deployment_of(read_meta(connection))
    with open_writer(version_1, deployment) as writer:
        before = everything(writer.store)
        assert writer.rebuild() == 7
        assert everything(writer.store) == before


def test_upgrade__that_fails_on_the_way__leaves_version_1(version_1):
    with opened_raw(version_1) as raw, raw.write() as connection:
        connection.execute(text("CREATE INDEX session_opened ON session (number)"))  # a name that revision 2 needs
        before = connection.execute(text("SELECT * FROM session")).all()
    with pytest.raises(StoreError, match="session_opened"), open_locked(version_1):
        pass
    with opened_raw(version_1) as raw, raw.write() as connection:
        assert schema.revision_of(connection) == "1"
        assert not inspect(connection).has_table("alembic_version")
        assert connection.execute(text("SELECT * FROM session")).all() == before
        connection.execute(text("DROP INDEX session_opened"))
    with open_locked(version_1) as store:
        assert query.status(store).value.sessions == 2


def test_upgrade__beside_a_writer__is_refused(version_1):
    with (
        opened_raw(version_1) as raw,
        writer_lock(raw.engine, raw.label),
        pytest.raises(LockedError, match="Another process writes"),
        open_locked(version_1),
    ):
        pass


def described(connection):
    """Every table, column and index, as the database itself describes them."""
    found = inspect(connection)
    tables = {
        name: (
            {column["name"]: (str(column["type"]), column["nullable"]) for column in found.get_columns(name)},
            found.get_pk_constraint(name)["constrained_columns"],
        )
        for name in found.get_table_names()
    }
    if connection.dialect.name == "postgresql":
        indexes = connection.execute(text("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'"))
    else:
        indexes = connection.execute(text("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"))
    return tables, set(indexes.scalars())


def test_migrations__from_nothing__lead_to_the_declared_tables(empty_database, database):
    with opened_raw(empty_database) as migrated, migrated.write() as connection:
        schema._migrate(connection, "")
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, METADATA) == []
        by_migrations = described(connection)
    if str(database).startswith("postgresql") is not str(empty_database).startswith("postgresql"):
        return  # the declared tables of the other kind
    with open_locked(database) as declared, declared.read() as connection:
        assert described(connection) == by_migrations


def test_tables__in_postgresql__sort_every_text_by_its_bytes(postgresql):
    with postgresql.empty() as url:
        with opened_raw(url) as raw, raw.write() as connection:
            schema._migrate(connection, "")
        found = postgresql.run(
            "SELECT table_name, column_name, collation_name FROM information_schema.columns "
            "WHERE table_schema = 'public' AND data_type = 'text'",
            url.split("?")[0].rsplit("/", 1)[1],
        )
    texts = [column for table in METADATA.tables.values() for column in table.c if isinstance(column.type, Text)]
    assert len(found) == len(texts)
    assert {collation for _, _, collation in found} == {"C"}


def test_revisions__named_by_the_tables__are_those_of_the_migrations():
    config = Config()
    config.set_main_option("script_location", str(schema._MIGRATIONS))
    scripts = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(scripts)) == REVISIONS


@pytest.mark.parametrize("opened", [open_store, open_locked])
def test_open_store__of_a_newer_program__names_the_remedy_and_changes_nothing(database, opened):
    with open_locked(database) as store, store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '99'"))
    with (
        pytest.raises(StoreError, match=r"revision 99, which this program does not know: install the newer"),
        opened(database),
    ):
        pass
    with opened_raw(database) as raw, raw.read() as connection:
        assert schema.revision_of(connection) == "99"


def test_open_locked__of_tables_of_something_else__does_not_touch_them(empty_database):
    with opened_raw(empty_database) as raw, raw.write() as connection:
        connection.execute(text("CREATE TABLE session (mine TEXT)"))
    with pytest.raises(StoreError), open_locked(empty_database):
        pass
    with opened_raw(empty_database) as raw, raw.read() as connection:
        assert inspect(connection).get_table_names() == ["session"]


def test_insert_rows__with_values_at_their_limits__keeps_them(writer):
    big, limit = 2**63 - 1, 2**256 - 1
    row = (1, big, None, 7, "0xab", 'té"x,\t\n\\N', limit, "", True)
    columns = (
        "service_id", "valid_from", "valid_to", "node_id", "category_id", "category", "price", "metadata_uri", "active"
    )  # fmt: skip
    table = METADATA.tables["service"]
    with writer.store.write() as connection:
        insert_rows(connection, table, columns, [row])
        assert tuple(connection.execute(table.select()).mappings().one()[name] for name in columns) == row
