"""Fixtures of the indexer's tests: an in-memory chain with its node, an index file, and one real chain."""

from contextlib import contextmanager, nullcontext

import pytest
from sqlalchemy import select

from indexer.notices import Stepped
from indexer.store.tables import METADATA, NOT_OF_THE_CHAIN
from indexer.store.writer import open_writer
from indexer.sync import SyncOptions, run_once
from tests.indexer.model import Chain, Node
from tests.indexer.world import World, anvil
from tests.support.postgres import postgres

QUICK = SyncOptions(first_range=250, first_pause=0, longest_pause=0, poll_seconds=0.01, attempts=8)


@pytest.fixture
def chain():
    return Chain()


@pytest.fixture
def node(chain):
    return Node(chain)


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server, started by the first test that asks for it."""
    with postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request, tmp_path_factory):
    """Makes a context whose value says where an index may be made: a path of no file, or a URL."""
    if request.param == "sqlite":
        return lambda: nullcontext(tmp_path_factory.mktemp("database") / "index.sqlite")
    return request.getfixturevalue("postgresql").index


@pytest.fixture
def database(new_database):
    with new_database() as place:
        yield place


@pytest.fixture
def sqlite_database(tmp_path):
    """The path of an index in a file, for what only a file can show."""
    return tmp_path / "file.sqlite"


@pytest.fixture
def writer(database, chain):
    with open_writer(database, chain.deployment()) as opened:
        yield opened


@pytest.fixture
def world():
    with anvil() as url:
        made = World(url).deploy()
        yield made
        made.rpc.close()


def everything(store):
    """All rows of all tables that a chain's history determines."""
    with store.read() as connection:
        return {
            name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for name, table in METADATA.tables.items()
            if table not in NOT_OF_THE_CHAIN
        }


def steps_to(observe):
    """An observer that calls `observe` with the step's notice, after every step."""
    return lambda notice: observe(notice) if isinstance(notice, Stepped) else None


@contextmanager
def clean_index(path, deployment, rpc, options=QUICK):
    """Index a chain from nothing; gives the writer."""
    with open_writer(path, deployment) as opened:
        run_once(opened, rpc, options=options)
        yield opened
