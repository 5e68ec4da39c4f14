"""Records that were posted, blocks that were replaced, and how far the run goes that fills the index."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"

AMOUNT: sa.types.TypeEngine[Any] = sa.Numeric(78, 0).with_variant(sa.CHAR(78), "sqlite")
NUMBER: sa.types.TypeEngine[Any] = sa.BigInteger()
TEXT: sa.types.TypeEngine[Any] = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

POSTED: dict[str, sa.types.TypeEngine[Any]] = {
    "valid_from": NUMBER, "tool": TEXT, "service_id": NUMBER, "need": TEXT, "task": TEXT, "worked": sa.Boolean(),
    "calls": NUMBER, "failures": NUMBER, "judge_score": NUMBER, "latency_ms": NUMBER, "cost": AMOUNT, "message": TEXT,
    "note": TEXT, "signature": TEXT,
}  # fmt: skip


def upgrade() -> None:
    """Make tables; what is there stays as it is."""
    op.create_table(
        "posted",
        sa.Column("session_id", TEXT, primary_key=True),
        sa.Column("place", NUMBER, primary_key=True, autoincrement=False),
        *[sa.Column(name, kind, nullable=False) for name, kind in POSTED.items()],
    )
    op.create_index("posted_service_id", "posted", ["service_id", "valid_from"])
    op.create_index("posted_valid_from", "posted", ["valid_from"])
    op.create_table(
        "replaced_block",
        sa.Column("hash", TEXT, primary_key=True),
        sa.Column("number", NUMBER, nullable=False),
    )
    op.create_index("replaced_block_number", "replaced_block", ["number"])
    op.add_column("cursor", sa.Column("target", NUMBER, nullable=True))
