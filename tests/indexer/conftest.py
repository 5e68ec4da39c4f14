"""Fixtures of the indexer's tests: an in-memory chain with its node, an index file, and one real chain."""

from contextlib import contextmanager

import pytest
from sqlalchemy import select

from indexer.store.tables import METADATA
from indexer.store.writer import open_writer
from indexer.sync import SyncOptions, run_once
from tests.indexer.model import Chain, Node
from tests.indexer.world import World, anvil

QUICK = SyncOptions(first_pause=0, longest_pause=0, poll_seconds=0.01, attempts=8)


@pytest.fixture
def chain():
    return Chain()


@pytest.fixture
def node(chain):
    return Node(chain)


@pytest.fixture
def database(tmp_path):
    return tmp_path / "index.sqlite"


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
            if name not in {"meta", "cursor"}
        }


@contextmanager
def clean_index(path, deployment, rpc, options=QUICK):
    """Index a chain from nothing; gives the writer."""
    with open_writer(path, deployment) as opened:
        run_once(opened, rpc, options=options)
        yield opened
