"""The models of ReputationLedger and ExperienceLedger."""

from dataclasses import dataclass, field
from typing import NamedTuple

from eth_utils import keccak

from tests.model.core import Contract, Message, external, require
from tests.model.sessions import Manager

MAX_WEIGHT = 2**121


class Record(NamedTuple):
    """What a client found of a tool."""

    session_id: bytes
    tool: str
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


class Score(NamedTuple):
    """One rating as it was given."""

    node_id: int
    score: int
    paid: int
    counted: bool


@dataclass
class Reputation(Contract):
    """Every rating by its session, in the order in which they came: what a node is worth is summed from them."""

    manager: Manager
    scores: dict = field(default_factory=dict)

    @external
    def rate(self, sender, session_id, score):
        session = self._ratable(session_id, score)
        require(session.client == sender, "reputation: not the client")
        self._record(session_id, session, score)

    @external
    def rate_by_signature(self, _sender, session_id, score, signature):
        session = self._ratable(session_id, score)
        message = Message("Rating", self.address, (session_id, score))
        approved = signature is not None and signature.approves(session.client, message)
        require(approved, "reputation: bad signature")
        self._record(session_id, session, score)

    def ratings(self, node_id):
        """Sum, count, unpaid count, and both sums weighted by what was paid."""
        counted = [score for score in self.scores.values() if score.node_id == node_id and score.counted]
        weight = weighted = 0
        for score in counted:
            if weight + score.paid < MAX_WEIGHT:
                weight += score.paid
                weighted += score.score * score.paid
        unpaid = sum(score.paid == 0 for score in counted)
        return sum(score.score for score in counted), len(counted), unpaid, weight, weighted

    def _ratable(self, session_id, score):
        require(score <= 100, "reputation: score above 100")
        require(session_id not in self.scores, "reputation: already rated")
        session = self.manager.settlement(session_id)
        require(session, "reputation: session not settled")
        require(session.client != session.operator, "reputation: own node")
        return session

    def _record(self, session_id, session, score):
        _, count, unpaid, _, _ = self.ratings(session.node_id)
        counted = session.paid > 0 or unpaid < 3 + (count - unpaid)
        self.scores[session_id] = Score(session.node_id, score, session.paid, counted)
        self.log(
            "SessionRated",
            session_id,
            session.node_id,
            session.client,
            session.service_id,
            score,
            session.paid,
            counted,
        )


@dataclass
class Experience(Contract):
    """The records of each session, by tool."""

    manager: Manager
    records: dict = field(default_factory=dict)

    @external
    def attest(self, _sender, record, signature):
        self._attest(record, signature)

    @external
    def attest_many(self, _sender, records, signatures):
        require(len(records) == len(signatures), "experience: one signature per record")
        for record, signature in zip(records, signatures, strict=True):
            self._attest(record, signature)

    def of(self, session_id):
        """A session's records by tool."""
        return self.records.get(session_id, {})

    def _attest(self, record, signature):
        require(record.tool, "experience: empty tool")
        require(record.judge_score <= 100 or record.judge_score == 255, "experience: judge score above 100")
        require(record.failures <= record.calls, "experience: more failures than calls")
        session = self.manager.settlement(record.session_id)
        require(session, "experience: session not settled")
        require(session.client != session.operator, "experience: own node")
        message = Message("Experience", self.address, tuple(record))
        approved = signature is not None and signature.approves(session.client, message)
        require(approved, "experience: bad signature")
        earlier = self.of(record.session_id)
        require(record.tool not in earlier, "experience: already attested")
        spent = sum(one.cost for one in earlier.values())
        require(spent + record.cost <= session.paid, "experience: costs above what was paid")
        require(len(earlier) < max(1, session.calls), "experience: more records than calls")
        self.records[record.session_id] = {**earlier, record.tool: record}
        fields = (record.tool, *record[2:])
        self.log("ExperienceAttested", record.session_id, session.service_id, keccak(text=record.need), *fields)
