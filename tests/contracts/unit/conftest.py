"""Unit tests run on anvil; every test starts from the same two nodes and leaves nothing behind."""

import pytest


@pytest.fixture(autouse=True)
def _undone(world, isolated):
    """Undo every transaction of the test, behind the deployment of `world`."""


@pytest.fixture
def session_id(world):
    """An open session of `client` with service 1."""
    return world.open()
