"""One session, from a signed opening to the attestation: each state is in the journal before it is left.

Whatever state a kill left a session in, driving it again goes on there: a signed opening is sent as it was, a begun
call is made with the same voucher and request, and what the chain already has is not done twice.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

from counterfoil.agent.desk import Desk
from counterfoil.agent.forms import AnswerError, CallRequest, decode
from counterfoil.agent.job import Job
from counterfoil.agent.journal import CallRow, Outcome, SessionRow, SessionState
from counterfoil.agent.judges import judge
from counterfoil.agent.market import ReplacedError
from counterfoil.agent.memory import Lesson
from counterfoil.agent.node_client import NodeClient, NodeError, NodeRefusedError
from counterfoil.agent.notes import ToolNote
from counterfoil.agent.rating import CallResult, median, rate
from counterfoil.agent.spending import BookError
from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import ExperienceRecord, SessionStatus, Write
from counterfoil.chain.contracts import SessionState as OnChain
from counterfoil.chain.errors import ChainError, RevertedError
from counterfoil.chain.sender import Signed, events_of
from counterfoil.chain.typed_data import experience, rating, voucher
from counterfoil.node.vouchers import Refusal, Voucher
from indexer.rows import NO_JUDGE

_REOPENINGS: Final = 5
"""How often a session may be opened again that reorgs took away."""
# Refusals that say no more than that the market moved between the choice and the block that took it.
MOVED: Final = frozenset(
    {
        "sessions: snapshot not on this chain",
        "sessions: snapshot too old",
        "sessions: wrong nonce",
        "sessions: not the latest draw",
        "sessions: attempt not later",
        "sessions: price above max_price",
        "sessions: service not routable",
    }
)
_ENDED: Final = frozenset({Refusal.NOT_OPEN, Refusal.EXPIRED})
_MESSAGE_BYTES: Final = 160
_SHOWN: Final = 200


# A word about a session that is undone with its settlement is said again once that is back; any other refusal is final.
_UNSETTLED: Final = frozenset({"reputation: session not settled", "experience: session not settled"})


class GoneError(Exception):
    """A reorg took a session away that the chain had."""


class OwnFaultError(ChainError):
    """Something on our own side is dead: nobody is blamed, and the run goes on once it is back."""


def void(desk: Desk, row: SessionRow) -> None:
    """Write down that a session never came to be, and let go of what was reserved for it."""
    with suppress(BookError):  # a kill came before it was reserved
        desk.spending.released(row.reservation_id)
    desk.journal.put(replace(row, state=SessionState.VOID))


def see_that_we_are_online(chain: Chain, error: NodeError) -> None:
    """Raise OwnFaultError where our own RPC cannot be reached either: then the fault may well be on our side."""
    try:
        chain.head()
    except ChainError as own:
        raise OwnFaultError(f"Our own side is out of reach ({own}), so no node is blamed: {error}.") from own


class Driver:
    """Drives the sessions of one job; without `calling` to their end alone, for a job that has its answers."""

    def __init__(self, desk: Desk, job: Job, opened: Callable[[str], None], *, calling: bool = True) -> None:
        self._desk = desk
        self._job = job
        self._opened = opened
        self._calling = calling

    def drive(self, row: SessionRow) -> SessionRow:
        """Take a session to its end. Raises ReplacedError when the chain has none, and OwnFaultError."""
        if row.state is SessionState.RESERVED:
            void(self._desk, row)
            raise ReplacedError
        for _ in range(_REOPENINGS):
            try:
                return self._drive(row)
            except GoneError:
                row = self._again(row)
        raise ChainError(f"The chain took a session away {_REOPENINGS} times: wait until it is calm, then go on.")

    def _drive(self, row: SessionRow) -> SessionRow:
        if row.state is SessionState.INTENDED:
            row = self.open(row)
        if row.state is SessionState.OPEN:
            row = self._call(row)
        if row.state is SessionState.CALLED:
            row = self._end(row)
        return row

    # --- opening

    def _again(self, row: SessionRow) -> SessionRow:
        """Intend the same opening again: while its transaction can be mined, another session would be a second deposit.

        Raises ReplacedError where the chain lost what was sent before it, too: then it is drawn anew.
        """
        if self._desk.wallet.is_early(_opening_of(row)):
            void(self._desk, row)
            raise ReplacedError
        return self._put(row, state=SessionState.INTENDED)

    def open(self, row: SessionRow) -> SessionRow:
        """Send a signed opening, as often as need be. Raises ReplacedError where it can never be mined."""
        signed = _opening_of(row)
        try:
            mined = self._desk.wallet.submit(signed)
        except RevertedError as error:
            void(self._desk, row)
            if error.reason in MOVED:
                raise ReplacedError from error
            raise
        except ChainError as error:
            if not self._desk.wallet.is_lost(signed):
                raise
            void(self._desk, row)
            raise ReplacedError from error
        (opened,) = events_of(self._desk.manager.contract, mined, "SessionOpened")
        session_id = "0x" + bytes(opened["session_id"]).hex()
        row = self._put(row, session_id=session_id, state=SessionState.OPEN, seen_in=mined.block)
        self._opened(session_id)
        return row

    # --- calls

    def _call(self, row: SessionRow) -> SessionRow:
        session = self._session(row)
        if session.status != SessionStatus.OPEN or row.failure or not self._calling:
            return self._put(row, state=SessionState.CALLED)
        node = self._desk.node(row.endpoint)
        for item in self._items(row):
            made = self._make(row, session, node, item)
            if made.outcome is Outcome.OWN_FAULT:  # the session ended: what is left is done in another
                break
            if made.outcome is Outcome.FAILED:
                return self._put(row, state=SessionState.CALLED, failure=made.reason[:_SHOWN])
        return self._put(row, state=SessionState.CALLED)

    def _items(self, row: SessionRow) -> list[int]:
        """The requests that are still to be answered: with `try_both` every session answers all of them."""
        rows = [row] if self._job.try_both else self._desk.journal.sessions(row.run_id, row.step_id)
        taken = [one for one in rows if one.state is not SessionState.VOID]
        calls = [call for one in taken for call in self._desk.journal.calls(one.reservation_id)]
        answered = {call.item for call in calls if call.outcome is Outcome.WORKED}
        return [item for item in range(len(self._job.requests)) if item not in answered]

    def _make(self, row: SessionRow, session: OnChain, node: NodeClient, item: int) -> CallRow:
        before = self._desk.journal.calls(row.reservation_id)
        begun = [call for call in before if call.outcome is Outcome.PENDING]
        number, item = (begun[0].calls, begun[0].item) if begun else (len(before) + 1, item)
        request = self._job.requests[item]
        begin = CallRow(row.reservation_id, number, item, session.price * number, _request_document(request))
        self._desk.journal.put(begin)
        made = self._outcome(row, node, begin, request)
        self._desk.journal.put(made)
        return made

    def _outcome(self, row: SessionRow, node: NodeClient, begun: CallRow, request: CallRequest) -> CallRow:
        signed = self._voucher(row.session_id, begun.amount, begun.calls)
        started = time.monotonic_ns()
        try:
            answer = node.call(signed, request)
        except NodeRefusedError as error:
            return self._refused(row, begun, error)
        except NodeError as error:
            see_that_we_are_online(self._desk.chain, error)
            return replace(begun, outcome=Outcome.FAILED, reason=str(error))
        latency_ms = (time.monotonic_ns() - started) // 1_000_000
        output, failure = None, None
        try:
            output = decode(self._job.form, answer)
        except AnswerError as error:
            failure = str(error)
        verdict = judge(self._job.checks, request, answer, output, latency_ms, failure=failure)
        return replace(
            begun,
            outcome=Outcome.WORKED if verdict.worked else Outcome.FAILED,
            status=answer.status,
            output=output,
            latency_ms=latency_ms,
            judge_score=verdict.score,
            reason=verdict.reason,
        )

    def _refused(self, row: SessionRow, begun: CallRow, error: NodeRefusedError) -> CallRow:
        """What a refusal comes to: a session that ended, or that the chain does not have, is nobody's fault."""
        session = self._session(row)
        ended = error.kind in _ENDED and (
            session.status != SessionStatus.OPEN or self._desk.chain.head().timestamp >= session.expires_at
        )
        outcome = Outcome.OWN_FAULT if ended else Outcome.FAILED
        return replace(begun, outcome=outcome, status=error.status, reason=str(error))

    def _voucher(self, session_id: str, amount: int, calls: int) -> Voucher:
        manager = self._desk.manager
        data = voucher(self._desk.chain.chain_id, manager.address, session_id, amount, calls)
        return Voucher(session_id, amount, calls, data.sign(self._desk.wallet.account))

    def _session(self, row: SessionRow) -> OnChain:
        session = self._desk.manager.session(row.session_id)
        if session.status == SessionStatus.NONE:
            head = self._desk.chain.head().number
            if head < row.seen_in:
                raise ChainError(f"The RPC is at block {head} and was at {row.seen_in}: wait for it, or use another.")
            raise GoneError
        return session

    # --- the end

    def _end(self, row: SessionRow) -> SessionRow:
        session = self._settle(row)
        if session.status != SessionStatus.SETTLED:
            return self._put(row, state=SessionState.CLOSING)
        return self.conclude(row, session)

    def conclude(self, row: SessionRow, session: OnChain) -> SessionRow:
        """Count, rate, attest and remember a settled session."""
        self._desk.spending.settled(row.reservation_id, session.paid)
        row = self._put(row, paid=session.paid)
        calls = self._desk.journal.calls(row.reservation_id)
        row = self._rate(row, calls)
        counted = [call for call in calls if call.outcome in {Outcome.WORKED, Outcome.FAILED}]
        if counted:
            record = self._record(row, session, counted)
            self._attest(record)
            self._desk.memory.learn(_lesson(row, record, self._desk.chain.head().timestamp))
        head = self._desk.chain.head()
        # What a reorg undid before this block is seen here, what it undoes later by the block's hash.
        if self._session(row).status != SessionStatus.SETTLED:
            return self._end(row)
        row = self._rate(row, calls)
        return self._put(row, state=SessionState.DONE, seen_in=head.number, seen_hash=head.hash)

    def _settle(self, row: SessionRow) -> OnChain:
        """Have the node settle. What it answers counts for nothing: where the chain says that it did not, close."""
        if self._session(row).status == SessionStatus.OPEN:
            charged = [call for call in self._desk.journal.calls(row.reservation_id) if 200 <= call.status < 300]
            last = charged[-1] if charged else None
            with suppress(NodeError):
                self._desk.node(row.endpoint).settle(
                    self._voucher(row.session_id, last.amount if last else 0, last.calls if last else 0)
                )
        session = self._session(row)
        if session.status == SessionStatus.OPEN and self._desk.wallet.pays():
            with suppress(RevertedError):  # the node settled it at the last moment
                self._desk.wallet.send(self._desk.manager.request_close(row.session_id))
            session = self._session(row)
        return session

    def _rate(self, row: SessionRow, calls: Sequence[CallRow]) -> SessionRow:
        """Rate a session once: what is sent is written down before, so that it is the same after a kill."""
        if row.score is None:
            results = [
                CallResult(
                    call.outcome is Outcome.WORKED, call.latency_ms, call.judge_score, call.outcome is Outcome.OWN_FAULT
                )
                for call in calls
            ]
            found = rate(results, self._desk.markets.now()[0].median(row.category))
            if found is None:
                return row
            row = self._put(row, score=found.score, why=found.reason)
        ledger = self._desk.reputation
        if row.score is None or ledger.score_of(row.session_id) is not None:
            return row
        data = rating(self._desk.chain.chain_id, ledger.address, row.session_id, row.score)
        signature = data.sign(self._desk.wallet.account)
        refused = self._said(ledger.rate_by_signature(row.session_id, row.score, signature))
        if refused in ("", "reputation: already rated"):
            return row
        return self._put(row, score=None, why=f"not rated: {refused}")

    def _said(self, word: Write) -> str:
        """Send a word about a session; give the chain's reason where it refuses it for good, "" where it does not."""
        try:
            self._desk.wallet.carry(word)
        except RevertedError as error:
            if error.reason in _UNSETTLED:
                raise
            return error.reason or "the chain gives no reason"
        return ""

    def _record(self, row: SessionRow, session: OnChain, calls: Sequence[CallRow]) -> ExperienceRecord:
        said = self._desk.notes.find(row.session_id, self._job.tool) or ToolNote(tool=self._job.tool)
        worked = [call.latency_ms for call in calls if call.outcome is Outcome.WORKED]
        scores = [call.judge_score for call in calls if call.judge_score is not None]
        return ExperienceRecord(
            session_id=row.session_id,
            tool=self._job.tool,
            need=said.need or self._job.need,
            task=said.task or self._job.task,
            worked=not row.failure,
            calls=len(calls),
            failures=len(calls) - len(worked),
            judge_score=sum(scores) // len(scores) if scores else NO_JUDGE,
            latency_ms=median(worked) or 0,
            cost=session.paid,
            message=_cut(row.failure),
            note=said.note,
        )

    def _attest(self, record: ExperienceRecord) -> None:
        ledger = self._desk.experience
        signature = experience(self._desk.chain.chain_id, ledger.address, record).sign(self._desk.wallet.account)
        self._said(ledger.attest(record, signature))

    def _put(self, row: SessionRow, **changes: Any) -> SessionRow:  # noqa: ANN401
        changed = replace(row, **changes)
        self._desk.journal.put(changed)
        return changed


def _opening_of(row: SessionRow) -> Signed:
    return Signed("SessionManager.open", row.sent_by, row.account_nonce, row.tx_hash, row.raw)


def _request_document(request: CallRequest) -> dict[str, Any]:
    return {**asdict(request), "headers": dict(request.headers), "body": request.body.decode("utf-8", "replace")}


def _lesson(row: SessionRow, record: ExperienceRecord, now: int) -> Lesson:
    return Lesson(
        session_id=row.session_id,
        tool=record.tool,
        service_id=row.service_id,
        category=row.category,
        operator=row.operator,
        need=record.need,
        task=record.task,
        worked=record.worked,
        calls=record.calls,
        failures=record.failures,
        judge_score=None if record.judge_score == NO_JUDGE else record.judge_score,
        latency_ms=record.latency_ms,
        cost=record.cost,
        price_per_call=row.price,
        note=record.note,
        learned_at=now,
    )


def _cut(text: str) -> str:
    return text.encode()[:_MESSAGE_BYTES].decode("utf-8", "ignore")
