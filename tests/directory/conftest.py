"""Databases of both kinds, as many as a test wants."""

from tests.indexer.conftest import chain, database, new_database, postgresql, writer  # noqa: F401
