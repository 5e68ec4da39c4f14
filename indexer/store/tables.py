"""The index tables, declared with SQLModel. Columns of projections are the fields of `indexer.rows`.

Law 2 (design section 1): a versioned row is valid in [valid_from, valid_to), valid_to NULL while it is current; one
version per key and block. Facts and raw logs are identified by their place, so that no text can make them collide.

Every key has exactly one current row, whatever happened to it. So the partial indexes over current rows list the keys
of a question in order, and the primary key leads from each of them to its version at a block: an answer costs the
same with one version of a key as with a million. What is declared here is what `migrations` leads to.
"""

from typing import Any

from sqlalchemy import BigInteger, Index, Table, text
from sqlmodel import Field, MetaData, SQLModel

from indexer.rows import Row
from indexer.store.types import BYTEWISE, Uint256

REVISIONS = ("1", "2", "3")
"""The schema's revisions, in order; an index has the last one. See `migrations/versions`."""
METADATA = MetaData()
_CURRENT = text("valid_to IS NULL")
_CLOSED = text("valid_to IS NOT NULL")


class Base(SQLModel):
    """Base of the index tables: their own metadata, apart from anything else that uses SQLModel."""

    metadata = METADATA


def _number(**options: Any) -> Any:  # noqa: ANN401
    return Field(sa_type=BigInteger, sa_column_kwargs={"autoincrement": False}, **options)


def _amount() -> Any:  # noqa: ANN401
    return Field(sa_type=Uint256)


def _text(**options: Any) -> Any:  # noqa: ANN401
    return Field(sa_type=BYTEWISE, **options)


def _current(name: str, *columns: str, unique: bool = False) -> Index:
    """Index the current rows: the keys of a question, in the order of the last column."""
    return Index(name, *columns, unique=unique, sqlite_where=_CURRENT, postgresql_where=_CURRENT)


def _fact_index(table: str, column: str) -> Index:
    """Index a table of facts by a column, in the order of their logs."""
    return Index(f"{table}_{column}", column, "valid_from", "log_index")


def _versioned(table: str, *key: str) -> tuple[Index, ...]:
    """Index a versioned table: one current version per key, and both ends of validity for rollbacks."""
    return (
        _current(f"{table}_current", *key, unique=True),
        Index(f"{table}_valid_from", "valid_from"),
        Index(f"{table}_valid_to", "valid_to", sqlite_where=_CLOSED, postgresql_where=_CLOSED),
    )


class MetaTable(Base, table=True):
    """What this index is of: pairs that never change once written."""

    __tablename__ = "meta"
    name: str = _text(primary_key=True)
    value: str = _text()


class CursorTable(Base, table=True):
    """The one row that says how far the index is; moved in the transaction that writes the rows."""

    __tablename__ = "cursor"
    id: int = _number(primary_key=True)
    number: int = _number()
    hash: str = _text()
    finalized: int | None = _number(nullable=True)
    raw_logs_from: int | None = _number(nullable=True)
    """The first block whose raw logs are kept; NULL while none were pruned."""
    target: int | None = _number(nullable=True)
    """The block that the run which wrote last was on its way to; NULL while none has said so."""


class BlockTable(Base, table=True):
    """Every block from the first on, with the digest after it."""

    __tablename__ = "block"
    number: int = _number(primary_key=True)
    hash: str = _text(index=True)
    parent_hash: str = _text()
    timestamp: int = _number()
    digest: str = _text()


class RawLogTable(Base, table=True):
    """A log as the chain gave it; `topics` are joined by commas. Projections can be rebuilt from these alone."""

    __tablename__ = "raw_log"
    block_number: int = _number(primary_key=True)
    log_index: int = _number(primary_key=True)
    block_hash: str = _text()
    tx_hash: str = _text()
    tx_index: int = _number()
    address: str = _text()
    topics: str = _text()
    data: str = _text()


class QuarantineTable(Base, table=True):
    """A log that changed nothing, and why."""

    __tablename__ = "quarantine"
    block_number: int = _number(primary_key=True)
    log_index: int = _number(primary_key=True)
    reason: str = _text()


class NodeTable(Base, table=True):
    """Versions of `rows.Node`."""

    __tablename__ = "node"
    __table_args__ = (*_versioned("node", "node_id"), Index("node_operator", "operator", "node_id"))
    node_id: int = _number(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    operator: str = _text()
    endpoint: str = _text()


class NodeStakeTable(Base, table=True):
    """Versions of `rows.NodeStake`."""

    __tablename__ = "node_stake"
    __table_args__ = _versioned("node_stake", "node_id")
    node_id: int = _number(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    stake: int = _amount()
    unbonding: int = _amount()
    release_at: int = _number()


class CapabilityTable(Base, table=True):
    """Versions of `rows.Capability`."""

    __tablename__ = "capability"
    __table_args__ = _versioned("capability", "node_id", "capability")
    node_id: int = _number(primary_key=True)
    capability: str = _text(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    enabled: bool


class ServiceTable(Base, table=True):
    """Versions of `rows.Service`."""

    __tablename__ = "service"
    __table_args__ = (
        *_versioned("service", "service_id"),
        _current("service_category", "category_id", "service_id"),
        _current("service_node", "node_id", "service_id"),
    )
    service_id: int = _number(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    node_id: int = _number()
    category_id: str = _text()
    category: str = _text()
    price: int = _amount()
    metadata_uri: str = _text()
    active: bool


class NodeLoadTable(Base, table=True):
    """Versions of `rows.NodeLoad`."""

    __tablename__ = "node_load"
    __table_args__ = _versioned("node_load", "node_id")
    node_id: int = _number(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    active_sessions: int = _number()


class NodeReputationTable(Base, table=True):
    """Versions of `rows.NodeReputation`."""

    __tablename__ = "node_reputation"
    __table_args__ = _versioned("node_reputation", "node_id")
    node_id: int = _number(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    rating_sum: int = _number()
    rating_count: int = _number()
    unpaid_count: int = _number()
    paid_weight: int = _amount()
    weighted_sum: int = _amount()


class SessionTable(Base, table=True):
    """Versions of `rows.Session`."""

    __tablename__ = "session"
    __table_args__ = (
        *_versioned("session", "session_id"),
        _current("session_number", "number", unique=True),
        _current("session_client", "client", "number"),
        _current("session_service", "service_id", "number"),
        _current("session_node", "node_id", "number"),
        _current("session_opened", "opened_block", "number"),
        _current("session_status", "status", "number"),
    )
    session_id: str = _text(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    number: int = _number()
    client: str = _text()
    service_id: int = _number()
    node_id: int = _number()
    operator: str = _text()
    signer: str = _text()
    price: int = _amount()
    max_price: int = _amount()
    deposit: int = _amount()
    expires_at: int = _number()
    policy: int = _number()
    nonce: int = _amount()
    attempt: int = _amount()
    snapshot_block: int = _number()
    snapshot_hash: str = _text()
    draw_seed: str = _text()
    price_cap: int = _amount()
    decision: str = _text()
    opened_block: int = _number()
    status: int = _number()
    closes_at: int = _number()
    paid: int = _amount()
    refunded: int = _amount()
    calls: int = _amount()


class CreditTable(Base, table=True):
    """Versions of `rows.Credit`."""

    __tablename__ = "credit"
    __table_args__ = _versioned("credit", "account")
    account: str = _text(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    amount: int = _amount()


class DisputeTable(Base, table=True):
    """Versions of `rows.Dispute`."""

    __tablename__ = "dispute"
    __table_args__ = (
        *_versioned("dispute", "dispute_id"),
        _current("dispute_session", "session_id", "dispute_id"),
        _current("dispute_node", "node_id", "dispute_id"),
    )
    dispute_id: int = _number(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    session_id: str = _text()
    node_id: int = _number()
    client: str = _text()
    claim: int = _amount()
    bond: int = _amount()
    evidence: str = _text()
    status: int = _number()
    award: int = _amount()


class CourtCreditTable(Base, table=True):
    """Versions of `rows.CourtCredit`."""

    __tablename__ = "court_credit"
    __table_args__ = _versioned("court_credit", "account")
    account: str = _text(primary_key=True)
    valid_from: int = _number(primary_key=True)
    valid_to: int | None = _number(nullable=True)
    amount: int = _amount()


class ParameterTable(Base, table=True):
    """`rows.Parameter`, one row per constructor argument."""

    __tablename__ = "parameter"
    valid_from: int = _number(primary_key=True)
    log_index: int = _number(primary_key=True)
    contract: str = _text()
    name: str = _text(primary_key=True)
    value: str = _text()


class RatingTable(Base, table=True):
    """`rows.Rating`."""

    __tablename__ = "rating"
    __table_args__ = (_fact_index("rating", "node_id"), _fact_index("rating", "session_id"))
    valid_from: int = _number(primary_key=True)
    log_index: int = _number(primary_key=True)
    session_id: str = _text()
    node_id: int = _number()
    client: str = _text()
    service_id: int = _number()
    score: int = _number()
    paid: int = _amount()
    counted: bool


class ExperienceTable(Base, table=True):
    """`rows.Experience`."""

    __tablename__ = "experience"
    __table_args__ = (_fact_index("experience", "service_id"), _fact_index("experience", "session_id"))
    valid_from: int = _number(primary_key=True)
    log_index: int = _number(primary_key=True)
    session_id: str = _text()
    tool: str = _text()
    service_id: int = _number()
    need: str = _text()
    task: str = _text()
    worked: bool
    calls: int = _number()
    failures: int = _number()
    judge_score: int = _number()
    latency_ms: int = _number()
    cost: int = _amount()
    message: str = _text()
    note: str = _text()


class SlashTable(Base, table=True):
    """`rows.Slash`."""

    __tablename__ = "slash"
    __table_args__ = (_fact_index("slash", "node_id"),)
    valid_from: int = _number(primary_key=True)
    log_index: int = _number(primary_key=True)
    node_id: int = _number()
    from_stake: int = _amount()
    from_unbonding: int = _amount()
    recipient: str = _text()


class ArbiterTable(Base, table=True):
    """`rows.Arbiter`."""

    __tablename__ = "arbiter"
    valid_from: int = _number(primary_key=True)
    log_index: int = _number(primary_key=True)
    arbiter: str = _text()


class PostedTable(Base, table=True):
    """Records of experience that were posted instead of attested: no event, so a rebuild leaves them alone.

    `valid_from` is the block from which on a record counts; `place` its place among those of its session.
    """

    __tablename__ = "posted"
    __table_args__ = (
        Index("posted_service_id", "service_id", "valid_from"),
        Index("posted_valid_from", "valid_from"),
    )
    session_id: str = _text(primary_key=True)
    place: int = _number(primary_key=True)
    valid_from: int = _number()
    tool: str = _text()
    service_id: int = _number()
    need: str = _text()
    task: str = _text()
    worked: bool
    calls: int = _number()
    failures: int = _number()
    judge_score: int = _number()
    latency_ms: int = _number()
    cost: int = _amount()
    message: str = _text()
    note: str = _text()
    signature: str = _text()


class ReplacedBlockTable(Base, table=True):
    """Blocks that a reorg took away, for whoever asks about one by its hash."""

    __tablename__ = "replaced_block"
    __table_args__ = (Index("replaced_block_number", "number"),)
    hash: str = _text(primary_key=True)
    number: int = _number()


META = METADATA.tables["meta"]
CURSOR = METADATA.tables["cursor"]
BLOCK = METADATA.tables["block"]
RAW_LOG = METADATA.tables["raw_log"]
QUARANTINE = METADATA.tables["quarantine"]
POSTED = METADATA.tables["posted"]
REPLACED_BLOCK = METADATA.tables["replaced_block"]
NOT_OF_THE_CHAIN = {META, CURSOR, POSTED, REPLACED_BLOCK}
"""Tables whose rows do not follow from the chain's blocks alone."""


def table_of(row_type: type[Row]) -> Table:
    """Give the table of a row type."""
    return METADATA.tables[row_type.TABLE]
