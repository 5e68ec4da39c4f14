"""The projected facts as values: the index tables without their validity range.

A versioned row has a key and is valid from the block that wrote it until the next version of that key; a fact is
written once and never changes. Field names are the column names. Amounts are base units of their token.
"""

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from indexer.value import value

Value = int | str | bool
Key = tuple[int | str, ...]

OPEN, CLOSING, SETTLED = range(1, 4)
"""Status of a session, as SessionManager counts it."""

DISPUTE_OPEN = 1
"""Status of a dispute that is not ended, as DisputeCourt counts it."""

NO_JUDGE = 255
"""The judge's score of a record that nobody judged, as ExperienceLedger holds it."""

WEIGHT_LIMIT = 2**121
"""ReputationLedger stops weighing a node's ratings by what was paid once the weight would reach this."""


class Row:
    """What every row shares: the name of its table."""

    __slots__ = ()
    TABLE: ClassVar[str]


class Versioned(Row):
    """A fact that can change; KEY names the columns that identify it."""

    __slots__ = ()
    KEY: ClassVar[tuple[str, ...]]


V = TypeVar("V", bound=Versioned)


class Fact(Row):
    """A fact that never changes, identified by the place of its log."""

    __slots__ = ()


@value
class Node(Versioned):
    """An operator's node and where it answers."""

    TABLE: ClassVar[str] = "node"
    KEY: ClassVar[tuple[str, ...]] = ("node_id",)
    node_id: int
    operator: str
    endpoint: str


@value
class NodeStake(Versioned):
    """Stake that counts, stake on its way out, and the time (seconds) from which that may leave."""

    TABLE: ClassVar[str] = "node_stake"
    KEY: ClassVar[tuple[str, ...]] = ("node_id",)
    node_id: int
    stake: int
    unbonding: int
    release_at: int


@value
class Capability(Versioned):
    """A capability string of a node, switched on or off."""

    TABLE: ClassVar[str] = "capability"
    KEY: ClassVar[tuple[str, ...]] = ("node_id", "capability")
    node_id: int
    capability: str
    enabled: bool


@value
class Service(Versioned):
    """A listing of a node in a category, at a price per call."""

    TABLE: ClassVar[str] = "service"
    KEY: ClassVar[tuple[str, ...]] = ("service_id",)
    service_id: int
    node_id: int
    category_id: str
    category: str
    price: int
    metadata_uri: str
    active: bool


@value
class NodeLoad(Versioned):
    """How many sessions of a node are not settled yet."""

    TABLE: ClassVar[str] = "node_load"
    KEY: ClassVar[tuple[str, ...]] = ("node_id",)
    node_id: int
    active_sessions: int


@value
class NodeReputation(Versioned):
    """Counted ratings of a node (scores 0 to 100), plain and weighted by what each session paid."""

    TABLE: ClassVar[str] = "node_reputation"
    KEY: ClassVar[tuple[str, ...]] = ("node_id",)
    node_id: int
    rating_sum: int
    rating_count: int
    unpaid_count: int
    paid_weight: int
    weighted_sum: int


@value
class Session(Versioned):
    """A session. `number` counts from 1 in order of opening; times are seconds; `status` is OPEN to SETTLED."""

    TABLE: ClassVar[str] = "session"
    KEY: ClassVar[tuple[str, ...]] = ("session_id",)
    session_id: str
    number: int
    client: str
    service_id: int
    node_id: int
    operator: str
    signer: str
    price: int
    max_price: int
    deposit: int
    expires_at: int
    policy: int
    nonce: int
    attempt: int
    snapshot_block: int
    snapshot_hash: str
    draw_seed: str
    price_cap: int
    decision: str
    opened_block: int
    status: int
    closes_at: int
    paid: int
    refunded: int
    calls: int


@value
class Credit(Versioned):
    """What SessionManager owes an account."""

    TABLE: ClassVar[str] = "credit"
    KEY: ClassVar[tuple[str, ...]] = ("account",)
    account: str
    amount: int


@value
class Dispute(Versioned):
    """A dispute of a session: `status` 1 open, 2 upheld, 3 refused, 4 dropped; amounts in the stake token."""

    TABLE: ClassVar[str] = "dispute"
    KEY: ClassVar[tuple[str, ...]] = ("dispute_id",)
    dispute_id: int
    session_id: str
    node_id: int
    client: str
    claim: int
    bond: int
    evidence: str
    status: int
    award: int


@value
class CourtCredit(Versioned):
    """What DisputeCourt owes an account, in the stake token."""

    TABLE: ClassVar[str] = "court_credit"
    KEY: ClassVar[tuple[str, ...]] = ("account",)
    account: str
    amount: int


@value
class Parameter(Fact):
    """A constructor argument: a decimal number or an address, as text."""

    TABLE: ClassVar[str] = "parameter"
    contract: str
    name: str
    value: str


@value
class Rating(Fact):
    """A client's score (0 to 100) of a settled session; `counted` says whether it entered the node's sums."""

    TABLE: ClassVar[str] = "rating"
    session_id: str
    node_id: int
    client: str
    service_id: int
    score: int
    paid: int
    counted: bool


@value
class Experience(Fact):
    """A signed experience record; latency in milliseconds, judge_score 255 where nobody judged."""

    TABLE: ClassVar[str] = "experience"
    session_id: str
    tool: str
    service_id: int
    need: str
    task: str
    worked: bool
    calls: int
    failures: int
    judge_score: int
    latency_ms: int
    cost: int
    message: str
    note: str


@value
class Slash(Fact):
    """What a slash took from a node's stake and from its unbonding stake."""

    TABLE: ClassVar[str] = "slash"
    node_id: int
    from_stake: int
    from_unbonding: int
    recipient: str


@value
class Arbiter(Fact):
    """Who decides disputes from here on; the newest one does."""

    TABLE: ClassVar[str] = "arbiter"
    arbiter: str


VERSIONED: tuple[type[Versioned], ...] = (
    Capability, CourtCredit, Credit, Dispute, Node, NodeLoad, NodeReputation, NodeStake, Service, Session,
)  # fmt: skip
FACTS: tuple[type[Fact], ...] = (Arbiter, Experience, Parameter, Rating, Slash)


_COLUMNS: dict[type[Row], tuple[str, ...]] = {
    row_type: tuple(field.name for field in fields(row_type))  # type: ignore[arg-type]
    for row_type in (*VERSIONED, *FACTS)
}


def columns_of(row_type: type[Row]) -> tuple[str, ...]:
    """Name the columns of a row type, in order of declaration."""
    return _COLUMNS[row_type]


def getter_of(names: tuple[str, ...]) -> Callable[[object], tuple[Any, ...]]:
    """Make a function that gives these attributes of an object as a tuple, however few they are."""
    if len(names) == 1:
        single = attrgetter(names[0])
        return lambda item: (single(item),)
    return attrgetter(*names)


_VALUES = {row_type: getter_of(columns_of(row_type)) for row_type in (*VERSIONED, *FACTS)}
_KEYS = {row_type: getter_of(row_type.KEY) for row_type in VERSIONED}


def values_of(row: Row) -> tuple[Value, ...]:
    """Give a row's values in the order of `columns_of`."""
    return _VALUES[type(row)](row)


def changed(row: V, **columns: Value) -> V:
    """Give a row with other values in some columns: `dataclasses.replace`, at a third of its time."""
    values = dict(zip(_COLUMNS[type(row)], values_of(row), strict=True))
    return type(row)(*(values | columns).values())


def key_of(row: Versioned) -> Key:
    """Give the values that identify a versioned row."""
    return _KEYS[type(row)](row)
