"""Alembic's entry: runs inside the transaction that `indexer.store.schema` opened."""

from alembic import context

from indexer.store.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
