"""One busy market, indexed, and the API over it."""

from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from counterfoil.api.app import create_app
from counterfoil.receipt_store import ReceiptStore
from indexer.query import open_store
from tests.support.busy import busy_world
from tests.support.market import serving


def undone(folder=Path("nowhere")):
    """An application whose index is never asked: for what it says of itself."""
    return create_app(SimpleNamespace(label="nowhere"), ReceiptStore(folder))


@pytest.fixture(scope="session")
def busy(tmp_path_factory):
    with busy_world(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="session")
def busy_app(busy):
    with open_store(busy.settings().database_url()) as store:
        yield create_app(store, busy.world.receipts)


@pytest.fixture(scope="session")
def busy_url(busy_app):
    with serving(busy_app) as url:
        yield url


@pytest.fixture(scope="session")
def busy_api(busy_url):
    with httpx.Client(base_url=busy_url) as client:
        yield client
