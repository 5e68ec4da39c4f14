"""What questions are answered with, as JSON: the same in the API, in the terminal and over MCP.

Amounts are decimal strings in base units of their token; ratios are exact text such as `7/8` or `92`; what is unknown
is null. Times are seconds, `finalized` says whether the block of the answer is final.
"""

from typing import Any

from typing_extensions import TypedDict


class AsOfBlock(TypedDict):
    """The block that an answer is the state after; `behind`: how many blocks a backfill still has to bring."""

    chain_id: int
    block: int
    hash: str
    timestamp: int
    finalized: bool
    behind: int


class Service(TypedDict):
    """A listing with what counts of its node, and what most of those who tried it found."""

    service_id: int
    node_id: int
    category_id: str
    category: str
    price: str
    metadata_uri: str
    active: bool
    routable: bool
    operator: str
    endpoint: str
    stake: str
    max_concurrent: str
    active_sessions: int
    headroom: str
    rating_sum: int
    rating_count: int
    reputation: str | None
    tested: str | None


class Note(TypedDict):
    """A line that an agent wrote about a tool."""

    timestamp: int
    session_id: str
    tool: str
    note: str


class Summary(TypedDict):
    """What some records add up to (design section 6)."""

    runs: int
    calls: str
    cost: str
    worked_rate: str | None
    judge_score: str | None
    judged: int
    median_latency_ms: str | None
    cost_per_call: str | None
    notes: list[Note]


class Group(Summary):
    """The records of one tool that have a need or a task label in common."""

    tool: str
    label: str
    sentence: str


class Experience(TypedDict):
    """What is known of a service, by need and by task label: those with the most runs, and how many there are."""

    needs: list[Group]
    needs_in_all: int
    tasks: list[Group]
    tasks_in_all: int


class Match(Group):
    """The label whose experience counts, and how close it is to the task that was asked for."""

    closeness: str
    trusted: bool


class Place(TypedDict):
    """A place of a ranking; `match` is null where nobody tried the listing for the task or the need."""

    place: int
    service: Service
    tried_for_need: bool
    match: Match | None


class Node(TypedDict):
    """A node with its stake, load, reputation and enabled capabilities."""

    node_id: int
    operator: str
    endpoint: str
    stake: str
    unbonding: str
    release_at: int
    max_concurrent: str
    active_sessions: int
    rating_sum: int
    rating_count: int
    unpaid_count: int
    paid_weight: str
    weighted_sum: str
    capabilities: list[str]


class Session(TypedDict):
    """A session; `price_cap` is null where the client set none."""

    session_id: str
    number: int
    client: str
    service_id: int
    node_id: int
    operator: str
    signer: str
    price: str
    max_price: str
    deposit: str
    expires_at: int
    policy: str
    nonce: int
    attempt: int
    snapshot_block: int
    snapshot_hash: str
    draw_seed: str
    price_cap: str | None
    decision: str
    opened_block: int
    status: str
    closes_at: int
    paid: str
    refunded: str
    calls: int


class Status(TypedDict):
    """What the index is of, how far it is, and its digest (see `indexer.digest`)."""

    addresses: dict[str, str]
    genesis_hash: str
    first_block: int
    finalized_block: int | None
    digest: str
    nodes: int
    services: int
    sessions: int
    raw_logs: int
    raw_logs_from: int | None
    quarantined: int
    unknown_events: int


class Answer(TypedDict):
    """What every answer has."""

    as_of: AsOfBlock


class ServicesAnswer(Answer):
    """A page of listings; `next` is the `after` of the next page, null on the last."""

    services: list[Service]
    next: int | None


class ServiceAnswer(Answer):
    """One listing."""

    service: Service


class BestAnswer(Answer):
    """A page of a ranking; `next` is the `after` of the next page, null on the last."""

    best: list[Place]
    next: int | None


class ExperienceAnswer(Answer):
    """What is known of one service."""

    service_id: int
    experience: Experience


class NodesAnswer(Answer):
    """A page of nodes; `next` is the `after` of the next page, null on the last."""

    nodes: list[Node]
    next: int | None


class NodeAnswer(Answer):
    """One node."""

    node: Node


class SessionsAnswer(Answer):
    """A page of sessions; `next` is the `after` of the next page, null on the last."""

    sessions: list[Session]
    next: int | None


class SessionAnswer(Answer):
    """One session."""

    session: Session


class StatusAnswer(Answer):
    """What the index is of and how far it is."""

    status: Status


class Explanation(Answer):
    """Why a session is with its service: the sentence of its receipt, and the receipt with every reason."""

    session: Session
    reason: str
    decision: dict[str, Any]


class AuditCheck(TypedDict):
    """One thing that was checked, by chain state or by the index, and in a sentence what came out."""

    part: str
    name: str
    outcome: str
    sentence: str


class Audit(TypedDict):
    """The audit of a session: `outcome` is ok, mismatch or unknown; `by` has it for each part that was asked for."""

    session_id: str
    outcome: str
    first_difference: str | None
    by: dict[str, str | None]
    session: dict[str, Any] | None
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


class RouteAnswer(Answer):
    """What a lottery would choose: the receipt that nobody committed to, and its digest."""

    digest: str
    decision: dict[str, Any]


class TakenAnswer(TypedDict):
    """A record of experience that was taken: it counts from block `counts_from` on, while its session is settled."""

    session_id: str
    service_id: int
    tool: str
    counts_from: int
