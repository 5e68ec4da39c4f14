"""Indexes that lead every question to its rows, text sorted by bytes in PostgreSQL, and where raw logs begin."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"

CURRENT = sa.text("valid_to IS NULL")
PLACE = ["valid_from", "log_index"]

DROPPED = {
    "service": ["service_category", "ix_service_node_id"],
    "session": ["ix_session_number", "ix_session_client", "ix_session_node_id", "ix_session_opened_block"],
    "dispute": ["ix_dispute_session_id", "ix_dispute_node_id"],
    "rating": ["ix_rating_session_id", "ix_rating_node_id"],
    "experience": ["ix_experience_session_id", "ix_experience_service_id"],
    "slash": ["ix_slash_node_id"],
}
"""Indexes that others take the place of."""

OF_CURRENT_ROWS = {
    "service_category": ("service", ["category_id", "service_id"]),
    "service_node": ("service", ["node_id", "service_id"]),
    "session_client": ("session", ["client", "number"]),
    "session_service": ("session", ["service_id", "number"]),
    "session_node": ("session", ["node_id", "number"]),
    "session_opened": ("session", ["opened_block", "number"]),
    "session_status": ("session", ["status", "number"]),
    "dispute_session": ("dispute", ["session_id", "dispute_id"]),
    "dispute_node": ("dispute", ["node_id", "dispute_id"]),
}

OF_ALL_ROWS = {
    "node_operator": ("node", ["operator", "node_id"]),
    "rating_session_id": ("rating", ["session_id", *PLACE]),
    "rating_node_id": ("rating", ["node_id", *PLACE]),
    "experience_session_id": ("experience", ["session_id", *PLACE]),
    "experience_service_id": ("experience", ["service_id", *PLACE]),
    "slash_node_id": ("slash", ["node_id", *PLACE]),
}

TEXTS = {
    "meta": ["name", "value"],
    "cursor": ["hash"],
    "block": ["hash", "parent_hash", "digest"],
    "raw_log": ["block_hash", "tx_hash", "address", "topics", "data"],
    "quarantine": ["reason"],
    "node": ["operator", "endpoint"],
    "capability": ["capability"],
    "service": ["category_id", "category", "metadata_uri"],
    "session": ["session_id", "client", "operator", "signer", "snapshot_hash", "draw_seed", "decision"],
    "credit": ["account"],
    "dispute": ["session_id", "client", "evidence"],
    "court_credit": ["account"],
    "parameter": ["contract", "name", "value"],
    "rating": ["session_id", "client"],
    "experience": ["session_id", "tool", "need", "task", "message", "note"],
    "slash": ["recipient"],
    "arbiter": ["arbiter"],
}
"""Columns of text."""


def upgrade() -> None:
    """Change indexes, collations and the cursor; rows stay as they are."""
    for table, names in DROPPED.items():
        for name in names:
            op.drop_index(name, table)
    if op.get_context().dialect.name == "postgresql":
        for table, columns in TEXTS.items():
            for column in columns:
                op.alter_column(table, column, type_=sa.Text(collation="C"))
    for name, (table, columns) in OF_CURRENT_ROWS.items():
        op.create_index(name, table, columns, sqlite_where=CURRENT, postgresql_where=CURRENT)
    op.create_index(
        "session_number", "session", ["number"], unique=True, sqlite_where=CURRENT, postgresql_where=CURRENT
    )
    for name, (table, columns) in OF_ALL_ROWS.items():
        op.create_index(name, table, columns)
    op.add_column("cursor", sa.Column("raw_logs_from", sa.BigInteger(), nullable=True))
    op.execute("DELETE FROM meta WHERE name = 'schema_version'")
