"""What questions are answered with: values, never rows of a session. Amounts are base units of their token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from indexer.rows import Fact

T = TypeVar("T")
F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, slots=True)
class AsOf:
    """The block that an answer is the state after; timestamp in seconds.

    `behind` is how many blocks the index lacked of those that it was being filled with: 0 but in a backfill.
    """

    chain_id: int
    block: int
    hash: str
    timestamp: int
    finalized: bool
    behind: int = 0


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A value and the block that it is as of."""

    as_of: AsOf
    value: T


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items in ascending order; `next` is the `after` of the next page, None on the last one."""

    items: tuple[T, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """What routing reads of one routable listing (design section 5)."""

    service_id: int
    node_id: int
    price: int
    stake: int
    rating_sum: int
    rating_count: int
    active_sessions: int
    max_concurrent: int


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A listing with what counts of its node."""

    service_id: int
    node_id: int
    category_id: str
    category: str
    price: int
    metadata_uri: str
    active: bool
    routable: bool
    operator: str
    endpoint: str
    stake: int
    max_concurrent: int
    active_sessions: int
    rating_sum: int
    rating_count: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node with its stake, load, reputation and enabled capabilities."""

    node_id: int
    operator: str
    endpoint: str
    stake: int
    unbonding: int
    release_at: int
    max_concurrent: int
    active_sessions: int
    rating_sum: int
    rating_count: int
    unpaid_count: int
    paid_weight: int
    weighted_sum: int
    capabilities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recorded(Generic[F]):
    """A fact and the place of the log that states it."""

    block: int
    log_index: int
    fact: F


@dataclass(frozen=True, slots=True)
class QuarantinedLog:
    """A log that changed nothing, and why."""

    block: int
    log_index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Status:
    """What the index is of and how far it is; `finalized_block` is None until a block of ours is final.

    `raw_logs_from` is the first block whose raw logs are kept, None where all are. `unknown_events`, of those
    `quarantined`, are logs of our contracts whose event this program does not know.
    """

    genesis_hash: str
    first_block: int
    addresses: Mapping[str, str]
    finalized_block: int | None
    digest: str
    raw_logs: int
    raw_logs_from: int | None
    quarantined: int
    unknown_events: int
    nodes: int
    services: int
    sessions: int
