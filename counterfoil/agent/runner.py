"""One paid job, from the choice to the attestation.

The order matters: the receipt is on disk before its digest is on chain, and the session is on chain before a call.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from counterfoil.agent.desk import Desk
from counterfoil.agent.node_client import NodeClient, NodeError, NodeRefusedError
from counterfoil.agent.notes import ToolNote
from counterfoil.agent.rating import CallResult, Rating, median, rate
from counterfoil.chain.contracts import Choice, ExperienceRecord, SessionState, SessionStatus
from counterfoil.chain.errors import ChainError, RevertedError
from counterfoil.chain.sender import events
from counterfoil.chain.typed_data import experience, voucher
from counterfoil.market import Snapshot
from counterfoil.node.vouchers import Refusal, Voucher
from counterfoil.receipts import Policy, Receipt, Request, Skipped, build
from indexer import query
from indexer.rows import NO_JUDGE

MAX_ATTEMPTS = 4
MAX_DRAWS = 5
MEDIAN_SAMPLE = 100
INDEX_POLLS = 100
INDEX_POLL_SECONDS = 0.1
# Refusals that say no more than that the market moved between the choice and the block that took it.
MOVED = frozenset(
    {
        "sessions: snapshot not on this chain",
        "sessions: snapshot too old",
        "sessions: wrong nonce",
        "sessions: not the latest draw",
        "sessions: price above max_price",
        "sessions: service not routable",
    }
)


class ReplacedError(Exception):
    """The chain moved on from the session or from what was chosen on: nobody's fault, and a new draw is due."""


@dataclass(frozen=True, slots=True)
class Job:
    """What an agent wants done: a call for each of `bodies`, at most `price_cap` base units each (soft)."""

    category: str
    bodies: tuple[bytes, ...]
    need: str
    task: str
    tool: str
    price_cap: int | None = None
    pinned: int | None = None
    duration: int = 3600

    def __post_init__(self) -> None:
        """Raise ValueError for a job without calls."""
        if not self.bodies:
            raise ValueError("a job makes at least one call")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One session of a job and how it ended; `paid` in base units."""

    session_id: str
    service_id: int
    attempt: int
    decision: str
    paid: int
    worked: bool
    rating: Rating | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A job's outcome: the outputs of the session that worked (none if no session did), and every session opened."""

    job: Job
    outputs: tuple[bytes, ...]
    attempts: tuple[Attempt, ...]
    skipped: tuple[Skipped, ...]


@dataclass(slots=True)
class _Served:
    """What happened in one session."""

    last: Voucher
    outputs: list[bytes] = field(default_factory=list)
    results: list[CallResult] = field(default_factory=list)
    failure: str = ""


@dataclass(frozen=True, slots=True)
class _Draw:
    """One draw: what the receipts of all its attempts share."""

    snapshot: Snapshot
    request: Request


def always() -> bool:
    """A client that may open any number of sessions."""
    return True


class Agent:
    """Runs jobs for one wallet. `may_open` is asked before every session; `opened` hears of every one."""

    def __init__(
        self,
        desk: Desk,
        *,
        may_open: Callable[[], bool] = always,
        opened: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._desk = desk
        self._may_open = may_open
        self._opened = opened
        self._previous: str | None = None

    def run(self, job: Job) -> RunRecord:
        """Do a job. A session that a reorg took away is drawn anew, at most five times; then ChainError."""
        for _ in range(MAX_DRAWS):
            try:
                return self._run(job, self._draw(job))
            except ReplacedError:
                continue
        raise ChainError(f"The chain replaced {MAX_DRAWS} sessions in a row: wait until it is calm, then run again.")

    def _draw(self, job: Job) -> _Draw:
        snapshot = self._snapshot(job.category)
        policy = Policy.LOTTERY if job.pinned is None else Policy.PINNED
        nonce = self._desk.manager.draws(self._desk.address)
        request = Request(job.category, self._desk.address, nonce, job.price_cap, policy, job.pinned)
        return _Draw(snapshot, request)

    def _snapshot(self, category: str) -> Snapshot:
        """The market at the index's head, once that is a block of the chain: behind a reorg the index catches up."""
        for _ in range(INDEX_POLLS):
            snapshot = self._desk.market.snapshot(category)
            if self._desk.manager.chain.block(snapshot.as_of.block).hash == snapshot.as_of.hash:
                return snapshot
            time.sleep(INDEX_POLL_SECONDS)
        raise ChainError(
            "The index does not follow this chain: start `counterfoil index run --follow`, then run again."
        )

    def _receipt(self, draw: _Draw, attempt: int, skipped: Sequence[Skipped]) -> Receipt:
        return build(
            chain_id=draw.snapshot.as_of.chain_id,
            contracts=self._desk.contracts,
            snapshot_block=draw.snapshot.as_of.block,
            snapshot_hash=draw.snapshot.as_of.hash,
            request=draw.request,
            candidates=draw.snapshot.candidates,
            attempt=attempt,
            skipped=skipped,
            previous=self._previous,
        )

    def _run(self, job: Job, draw: _Draw) -> RunRecord:
        skipped: list[Skipped] = []
        attempts: list[Attempt] = []
        outputs: list[bytes] = []
        order = self._receipt(draw, 0, ()).order
        for attempt, service_id in zip(range(MAX_ATTEMPTS), order, strict=False):
            node = self._node(draw, service_id)
            try:
                node.probe()
            except NodeError as error:
                skipped.append(Skipped(service_id, f"node not reached: {error}"))
                continue
            if not self._may_open():
                break
            session_id, decision = self._open(job, draw, attempt, skipped)
            served = self._call(job, node, session_id)
            attempts.append(self._end(job, node, served, decision, attempt))
            outputs = served.outputs
            if not served.failure:
                break
            skipped.append(Skipped(service_id, f"session {session_id[:10]} failed: {served.failure}"))
        return RunRecord(job, tuple(outputs), tuple(attempts), tuple(skipped))

    def _node(self, draw: _Draw, service_id: int) -> NodeClient:
        service = query.service(self._desk.store, service_id, draw.snapshot.as_of.block).value
        endpoint = service.endpoint if service else ""
        return NodeClient(endpoint, self._desk.call_seconds, self._desk.allow_private)

    def _open(self, job: Job, draw: _Draw, attempt: int, skipped: Sequence[Skipped]) -> tuple[str, str]:
        receipt = self._receipt(draw, attempt, skipped)
        decision = self._desk.receipts.save(receipt)
        price = next(c.price for c in draw.snapshot.candidates if c.service_id == receipt.choice)
        choice = Choice(
            policy=draw.request.policy,
            nonce=draw.request.nonce,
            attempt=attempt,
            snapshot_block=draw.snapshot.as_of.block,
            snapshot_hash=draw.snapshot.as_of.hash,
            price_cap=draw.request.price_cap,
            decision=decision,
        )
        write = self._desk.manager.open(receipt.choice, price * len(job.bodies), price, job.duration, choice)
        try:
            mined = self._desk.sender.send(write)
        except RevertedError as error:
            if error.reason in MOVED:
                raise ReplacedError from error
            raise
        session_id = "0x" + bytes(events(write, mined, "SessionOpened")[0]["session_id"]).hex()
        self._previous = decision
        self._opened(session_id)
        return session_id, decision

    def _voucher(self, session_id: str, amount: int, calls: int) -> Voucher:
        manager = self._desk.manager
        data = voucher(manager.chain.chain_id, manager.address, session_id, amount, calls)
        return Voucher(session_id, amount, calls, data.sign(self._desk.account))

    def _call(self, job: Job, node: NodeClient, session_id: str) -> _Served:
        """Make the job's calls, each with its voucher, until one fails."""
        session = self._session(session_id)
        served = _Served(self._voucher(session_id, 0, 0))
        for calls, body in zip(count(1), job.bodies, strict=False):
            paid = self._voucher(session_id, session.price * calls, calls)
            started = time.monotonic_ns()
            try:
                served.outputs.append(node.call(paid, body))
                served.last = paid
            except NodeRefusedError as error:
                if error.kind == Refusal.UNKNOWN_SESSION:
                    self._session(session_id)
                served.failure = str(error)
            except NodeError as error:
                served.failure = str(error)
            served.results.append(CallResult(not served.failure, (time.monotonic_ns() - started) // 1_000_000))
            if served.failure:
                break
        return served

    def _session(self, session_id: str) -> SessionState:
        session = self._desk.manager.session(session_id)
        if session.status == SessionStatus.NONE:
            raise ReplacedError
        return session

    def _end(self, job: Job, node: NodeClient, served: _Served, decision: str, attempt: int) -> Attempt:
        session = self._settle(node, served)
        rating = rate(served.results, self._median(job))
        if session.status == SessionStatus.SETTLED:
            if rating is not None:
                self._desk.sender.send(self._desk.reputation.rate(served.last.session_id, rating.score))
            self._attest(job, served, session)
        return Attempt(
            session_id=served.last.session_id,
            service_id=session.service_id,
            attempt=attempt,
            decision=decision,
            paid=session.paid,
            worked=not served.failure,
            rating=rating,
        )

    def _settle(self, node: NodeClient, served: _Served) -> SessionState:
        """Have the node settle. What it answers counts for nothing: where the chain says that it did not, close."""
        session_id = served.last.session_id
        with suppress(NodeError):
            node.settle(served.last)
        session = self._session(session_id)
        if session.status == SessionStatus.OPEN:
            self._desk.sender.send(self._desk.manager.request_close(session_id))
            session = self._session(session_id)
        return session

    def _median(self, job: Job) -> int | None:
        """The median latency that others attested for services of the category."""
        services = query.services(self._desk.store, category=job.category).value.items
        facts = [
            recorded.fact
            for service in services
            for recorded in query.experience_of(
                self._desk.store, service_id=service.service_id, limit=MEDIAN_SAMPLE
            ).value.items
        ]
        return median([fact.latency_ms for fact in facts if fact.worked])

    def _attest(self, job: Job, served: _Served, session: SessionState) -> None:
        worked = [result.latency_ms for result in served.results if result.worked]
        session_id = served.last.session_id
        said = self._desk.notes.find(session_id, job.tool) or ToolNote(tool=job.tool)
        record = ExperienceRecord(
            session_id=session_id,
            tool=job.tool,
            need=said.need or job.need,
            task=said.task or job.task,
            worked=not served.failure,
            calls=len(served.results),
            failures=sum(not result.worked for result in served.results),
            judge_score=NO_JUDGE,
            latency_ms=median(worked) or 0,
            cost=session.paid,
            message=served.failure[:160],
            note=said.note,
        )
        ledger = self._desk.experience
        data = experience(ledger.chain.chain_id, ledger.address, record)
        self._desk.sender.send(ledger.attest(record, data.sign(self._desk.account)))
