"""The record of a run: what each step gave and cost, who served it, and on what decision. Made from the journal."""

from typing import Any, TypedDict

from counterfoil.agent.job import merit
from counterfoil.agent.journal import CallRow, Journal, Outcome, RunRow, SessionRow, SessionState, StepRow
from counterfoil.agent.workflow import Step, Workflow, pinned
from counterfoil.agent.workflows import DONE, workflow_of
from indexer.errors import UserError


class CallRecord(TypedDict):
    """One call; `judge_score` is null where no judge scored it."""

    calls: int
    item: int
    outcome: str
    status: int
    latency_ms: int
    judge_score: int | None
    reason: str


class SessionRecord(TypedDict):
    """One session; amounts are base units as text, `receipt` the digest that the session committed to."""

    session_id: str
    service_id: int
    operator: str
    receipt: str
    attempt: int
    price: str
    deposit: str
    paid: str
    state: str
    failure: str
    score: int | None
    why: str
    calls: list[CallRecord]


class StepRecord(TypedDict):
    """One step; `output` is null where it failed."""

    step_id: str
    status: str
    category: str
    found_by: str
    output: Any
    reason: str
    paid: str
    sessions: list[SessionRecord]


class RunRecord(TypedDict):
    """One run; times are ISO 8601 (UTC)."""

    run_id: str
    client: str
    workflow: str
    digest: str
    status: str
    reason: str
    started: str
    ended: str
    paid: str
    steps: list[StepRecord]


def record_of(journal: Journal, run: RunRow) -> RunRecord:
    """Put a run's record together, whether the run has ended or not."""
    workflow = workflow_of(run)
    steps = [_step(journal, row) for row in journal.steps(run.run_id)]
    return {
        "run_id": run.run_id,
        "client": run.client,
        "workflow": workflow.name,
        "digest": workflow.digest,
        "status": run.status,
        "reason": run.reason,
        "started": run.started,
        "ended": run.ended,
        "paid": str(sum(int(step["paid"]) for step in steps)),
        "steps": steps,
    }


def pinned_rerun(journal: Journal, run: RunRow) -> Workflow:
    """The run's workflow with every step pinned to the service that served it. Raises UserError where none did."""
    workflow = workflow_of(run)
    pins = {step.id: served_by(journal, run.run_id, step) for step in workflow.steps}
    served = {step_id: service_id for step_id, service_id in pins.items() if service_id is not None}
    if not served:
        raise UserError(f"No step of run {run.run_id} was served, so there is nothing to pin.")
    return pinned(workflow, served)


def served_by(journal: Journal, run_id: str, step: Step) -> int | None:
    """The service whose answers became a step's output: of two that were tried the kept one, of several the last."""
    row = journal.step(run_id, step.id)
    if row is None or row.status != DONE:
        return None
    answered = {
        session.service_id: calls
        for session in journal.sessions(run_id, step.id)
        if session.state is not SessionState.VOID and (calls := _worked(journal, session))
    }
    whole = [service_id for service_id, calls in answered.items() if len(calls) == step.calls]
    kept = sorted(whole, key=lambda service_id: merit(answered[service_id]))
    return next(iter([*kept, *reversed(answered)]), None)


def _worked(journal: Journal, session: SessionRow) -> list[CallRow]:
    return [call for call in journal.calls(session.reservation_id) if call.outcome is Outcome.WORKED]


def _step(journal: Journal, row: StepRow) -> StepRecord:
    sessions = [_session(journal, one) for one in journal.sessions(row.run_id, row.step_id) if one.session_id]
    return {
        "step_id": row.step_id,
        "status": row.status,
        "category": row.category,
        "found_by": row.found_by,
        "output": row.output,
        "reason": row.reason,
        "paid": str(sum(int(one["paid"]) for one in sessions)),
        "sessions": sessions,
    }


def _session(journal: Journal, row: SessionRow) -> SessionRecord:
    return {
        "session_id": row.session_id,
        "service_id": row.service_id,
        "operator": row.operator,
        "receipt": row.decision,
        "attempt": row.attempt,
        "price": str(row.price),
        "deposit": str(row.deposit),
        "paid": str(row.paid),
        "state": str(row.state),
        "failure": row.failure,
        "score": row.score,
        "why": row.why,
        "calls": [_call(call) for call in journal.calls(row.reservation_id)],
    }


def _call(row: CallRow) -> CallRecord:
    return {
        "calls": row.calls,
        "item": row.item,
        "outcome": str(row.outcome),
        "status": row.status,
        "latency_ms": row.latency_ms,
        "judge_score": row.judge_score,
        "reason": row.reason,
    }
