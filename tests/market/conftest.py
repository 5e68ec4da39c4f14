"""Databases of both kinds, as many as a test wants."""

from tests.indexer.conftest import new_database, postgresql  # noqa: F401
