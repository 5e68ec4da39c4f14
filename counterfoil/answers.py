"""What questions are answered with, as JSON: the same in the API, in the terminal and over MCP.

Amounts are decimal strings in base units of their token; ratios are exact text such as `7/8` or `92`; what is unknown
is null. Times are seconds, `finalized` says whether the block of the answer is final.
"""

from typing import Annotated, Any

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

Whole = Annotated[int, Field(ge=0, lt=2**63)]
"""A number or a count."""
Amount = Annotated[str, StringConstraints(pattern="^(0|[1-9][0-9]{0,99})$")]
"""Base units of a token, or another number that may be large."""
Ratio = Annotated[str, StringConstraints(pattern="^(0|[1-9][0-9]{0,99})(/[1-9][0-9]{0,99})?$")]
"""An exact ratio, such as `7/8` or `92`."""
Outcome = Annotated[str, StringConstraints(pattern="^(ok|note|mismatch|cannot be checked)$")]
"""What came out of a check or an audit."""


class AsOfBlock(TypedDict):
    """The block that an answer is the state after; `behind`: how many blocks a backfill still has to bring."""

    chain_id: Whole
    block: Whole
    hash: str
    timestamp: Whole
    finalized: bool
    behind: Whole


class Service(TypedDict):
    """A listing with what counts of its node, and what most of those who tried it found."""

    service_id: Whole
    node_id: Whole
    category_id: str
    category: str
    price: Amount
    metadata_uri: str
    active: bool
    routable: bool
    operator: str
    endpoint: str
    stake: Amount
    max_concurrent: Amount
    active_sessions: Whole
    headroom: Ratio
    rating_sum: Whole
    rating_count: Whole
    reputation: Ratio | None
    tested: str | None


class Note(TypedDict):
    """A line that an agent wrote about a tool."""

    timestamp: Whole
    session_id: str
    tool: str
    note: str


class Summary(TypedDict):
    """What some records add up to (design section 6)."""

    runs: Whole
    calls: Amount
    cost: Amount
    worked_rate: Ratio | None
    judge_score: Ratio | None
    judged: Whole
    median_latency_ms: Ratio | None
    cost_per_call: Ratio | None
    notes: list[Note]


class Group(Summary):
    """The records of one tool that have a need or a task label in common."""

    tool: str
    label: str
    sentence: str


class Experience(TypedDict):
    """What is known of a service, by need and by task label: those with the most runs, and how many there are."""

    needs: list[Group]
    needs_in_all: Whole
    tasks: list[Group]
    tasks_in_all: Whole


class Match(Group):
    """The label whose experience counts, and how close it is to the task that was asked for."""

    closeness: Ratio
    trusted: bool


class Place(TypedDict):
    """A place of a ranking; `match` is null where nobody tried the listing for the task or the need."""

    place: Whole
    service: Service
    tried_for_need: bool
    match: Match | None


class Node(TypedDict):
    """A node with its stake, load, reputation and enabled capabilities."""

    node_id: Whole
    operator: str
    endpoint: str
    stake: Amount
    unbonding: Amount
    release_at: Whole
    max_concurrent: Amount
    active_sessions: Whole
    rating_sum: Whole
    rating_count: Whole
    unpaid_count: Whole
    paid_weight: Amount
    weighted_sum: Amount
    capabilities: list[str]


class Session(TypedDict):
    """A session; `price_cap` is null where the client set none."""

    session_id: str
    number: Whole
    client: str
    service_id: Whole
    node_id: Whole
    operator: str
    signer: str
    price: Amount
    max_price: Amount
    deposit: Amount
    expires_at: Whole
    policy: str
    nonce: Whole
    attempt: Whole
    snapshot_block: Whole
    snapshot_hash: str
    draw_seed: str
    price_cap: Amount | None
    decision: str
    opened_block: Whole
    status: str
    closes_at: Whole
    paid: Amount
    refunded: Amount
    calls: Whole


class Status(TypedDict):
    """What the index is of, how far it is, and its digest (see `indexer.digest`)."""

    addresses: dict[str, str]
    genesis_hash: str
    first_block: Whole
    finalized_block: Whole | None
    digest: str
    nodes: Whole
    services: Whole
    sessions: Whole
    raw_logs: Whole
    raw_logs_from: Whole | None
    quarantined: Whole
    unknown_events: Whole


class Answer(TypedDict):
    """What every answer has."""

    as_of: AsOfBlock


class ServicesAnswer(Answer):
    """A page of listings; `next` is the `after` of the next page, null on the last."""

    services: list[Service]
    next: Whole | None


class ServiceAnswer(Answer):
    """One listing."""

    service: Service


class BestAnswer(Answer):
    """A page of a ranking; `next` is the `after` of the next page, null on the last."""

    best: list[Place]
    next: Whole | None


class ExperienceAnswer(Answer):
    """What is known of one service."""

    service_id: Whole
    experience: Experience


class NodesAnswer(Answer):
    """A page of nodes; `next` is the `after` of the next page, null on the last."""

    nodes: list[Node]
    next: Whole | None


class NodeAnswer(Answer):
    """One node."""

    node: Node


class SessionsAnswer(Answer):
    """A page of sessions; `next` is the `after` of the next page, null on the last."""

    sessions: list[Session]
    next: Whole | None


class SessionAnswer(Answer):
    """One session."""

    session: Session


class StatusAnswer(Answer):
    """What the index is of and how far it is."""

    status: Status


class IndexAnswer(TypedDict):
    """Where an index is, the chain's newest block, and how far the index is.

    `head` is null where no node of the chain answers or none was asked, `as_of` and `status` while the index is empty.
    """

    database: str
    head: Whole | None
    as_of: AsOfBlock | None
    status: Status | None


class Explanation(Answer):
    """Why a session is with its service: the sentence of its receipt, and the receipt with every reason."""

    session: Session
    reason: str
    decision: dict[str, Any]


class AuditCheck(TypedDict):
    """One thing that was checked, by chain state or by the index, and in a sentence what came out."""

    part: str
    name: str
    outcome: Outcome
    sentence: str


class Commitment(TypedDict):
    """What a session committed to when it was opened; `price_cap` is null where the client set none."""

    client: str
    service_id: Whole
    node_id: Whole
    operator: str
    price: Amount
    max_price: Amount
    policy: Whole
    nonce: Whole
    attempt: Whole
    snapshot_block: Whole
    snapshot_hash: str
    draw_seed: str
    price_cap: Amount | None
    decision: str
    opened_block: Whole


class Audit(TypedDict):
    """The audit of a session; `by` has the outcome of each part, null where that was not asked for."""

    session_id: str
    outcome: Outcome
    first_difference: str | None
    by: dict[str, Outcome | None]
    session: Commitment | None
    category: str | None
    checks: list[AuditCheck]


class AuditAnswer(Answer):
    """The audit of a session by one source: the server's own index, with the receipts that it keeps."""

    source: str
    audit: Audit


class ReceiptKept(TypedDict):
    """The digest under which a receipt is kept, which is the `decision` of its session."""

    digest: str


class NoteKept(TypedDict):
    """A note as it is kept for the record of its session."""

    session_id: str
    tool: str
    need: str
    task: str
    note: str
    kept_in: str


class PaidSession(TypedDict):
    """A session of a paid call; `score` is null where it was not rated (yet)."""

    session_id: str
    service_id: Whole
    receipt: str
    paid: Amount
    score: Whole | None
    failure: str


class CallAnswer(TypedDict):
    """A paid call: `output` is null where it failed, and `reason` says by whom it was served or why it failed."""

    run_id: str
    status: str
    reason: str
    output: Any
    paid: Amount
    sessions: list[PaidSession]


class RouteAnswer(Answer):
    """What a lottery would choose: the receipt that nobody committed to, and its digest."""

    digest: str
    decision: dict[str, Any]


class TakenAnswer(TypedDict):
    """A record of experience that was taken: it counts from block `counts_from` on, while its session is settled."""

    session_id: str
    service_id: Whole
    tool: str
    counts_from: Whole
