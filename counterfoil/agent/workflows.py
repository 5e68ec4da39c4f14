"""One run of a workflow: each step finds its category, is done by the runner, and hands its output on.

What is decided is in the journal before anything is paid for it, so that a restart goes on with the same category and
the same input, and pays for nothing twice.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from counterfoil.agent.checks import Checks
from counterfoil.agent.desk import Desk
from counterfoil.agent.draws import line
from counterfoil.agent.forms import CallRequest, encode, form_of
from counterfoil.agent.funding import UnfundedError
from counterfoil.agent.job import Done, Job
from counterfoil.agent.journal import UNDER_WAY, RunRow, StepRow
from counterfoil.agent.market import Market
from counterfoil.agent.references import references
from counterfoil.agent.runner import Runner
from counterfoil.agent.workflow import Step, Workflow, dump, read, resolve
from counterfoil.chain.errors import ChainError
from counterfoil.receipts import ReceiptError
from counterfoil.routing.lottery import LotteryError
from indexer.errors import UserError

RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
DURATION_SECONDS: Final = 3600


class NothingFoundError(UserError):
    """No service for a task and a need."""


@dataclass(frozen=True, slots=True)
class Found:
    """The category of a step and, where it was looked for, how it was found."""

    category: str
    found_by: str


class WorkflowRunner:
    """Runs workflows for one wallet; `say` hears of each step."""

    def __init__(self, desk: Desk, runner: Runner, say: Callable[[str], None]) -> None:
        self._desk = desk
        self._runner = runner
        self._say = say

    def start(self, workflow: Workflow) -> RunRow:
        """Write a new run down; nothing is done yet. Raises UserError for an input that cannot be sent."""
        check_inputs(workflow)
        now = datetime.now(UTC)
        run_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        row = RunRow(run_id, self._desk.address, dump(workflow), RUNNING, "", now.isoformat(timespec="seconds"))
        self._desk.journal.put(row)
        return row

    def go(self, run: RunRow) -> RunRow:
        """Do what is left of a run, and give its end.

        Where the chain cannot be asked, the run stays to be gone on with: nothing is known then of what was sent.

        Raises BusyRunError where another process makes it, and ChainError.
        """
        with self._desk.journal.holding(run.run_id):
            return self._go(self._desk.journal.run(run.run_id) or run)

    def _go(self, run: RunRow) -> RunRow:
        if run.status != RUNNING:
            return run
        workflow = workflow_of(run)
        outputs: dict[str, Any] = {}
        for step in workflow.steps:
            done = self._step(run, workflow, step, outputs)
            if done.status == FAILED:
                return self._end(run, FAILED, f"step {step.id}: {done.reason}")
            outputs[step.id] = done.output
        return self._end(run, DONE, "")

    def _end(self, run: RunRow, status: str, reason: str) -> RunRow:
        ended = replace(run, status=status, reason=reason, ended=datetime.now(UTC).isoformat(timespec="seconds"))
        self._desk.journal.put(ended)
        return ended

    def _step(self, run: RunRow, workflow: Workflow, step: Step, outputs: Mapping[str, Any]) -> StepRow:
        row = self._desk.journal.step(run.run_id, step.id) or StepRow(run.run_id, step.id, RUNNING)
        if row.status != RUNNING:
            return row
        try:
            row = row if row.category else self._begin(row, step, outputs)
            done = self._runner.run(job_of(run.run_id, workflow, step, row))
            row = replace(row, status=DONE if done.worked else FAILED, output=_output(step, done), reason=done.reason)
        except (ReceiptError, LotteryError) as error:
            row = replace(row, status=FAILED, reason=no_choice(row.category, error))
        except UserError as error:
            chain_fault = isinstance(error, ChainError) and not isinstance(error, UnfundedError)
            if chain_fault or self._is_under_way(run, step):
                raise
            row = replace(row, status=FAILED, reason=str(error).rstrip("."))
        self._desk.journal.put(row)
        self._say(f"step {step.id}: {'' if row.status == DONE else 'failed, '}{row.reason}")
        return row

    def _is_under_way(self, run: RunRow, step: Step) -> bool:
        """Whether a session of a step is not at its end: a step that failed is not gone on with, and its money is."""
        rows = self._desk.journal.sessions(run.run_id, step.id)
        return any(row.state in UNDER_WAY for row in rows)

    def _begin(self, row: StepRow, step: Step, outputs: Mapping[str, Any]) -> StepRow:
        market, why = self._desk.markets.now()
        found = find(step, market, why)
        row = replace(row, found_by=found.found_by, category=found.category, input=resolve(step.input, outputs))
        self._desk.journal.put(row)
        self._say(f"step {step.id}: {found.category}" + (f" ({found.found_by})" if found.found_by else ""))
        return row


def workflow_of(run: RunRow) -> Workflow:
    """Read the workflow that a run was started with."""
    return read(run.workflow.encode(), f"of run {run.run_id}")


def find(step: Step, market: Market, why_not_index: str) -> Found:
    """The category that a step is to be routed in: its own, its pin's, or that of the best service for task and need.

    Raises NothingFoundError.
    """
    source = f"own memory and the chain, since {why_not_index}" if why_not_index else "the directory"
    said = f"candidates and endpoints by the chain, since {why_not_index}" if why_not_index else ""
    if step.category:
        return Found(step.category, line(said))
    if step.service_id is not None:
        category = market.category_of(step.service_id)
        if category is None:
            raise NothingFoundError(f"Step {step.id}: {source} knows no service {step.service_id}: name its category.")
        return Found(category, line(said))
    best = market.best(step.task, step.need)
    if not best:
        raise NothingFoundError(
            f"Step {step.id}: {source} knows no service for task {step.task!r} and need {step.need!r}: "
            "name a category, or other words."
        )
    first = best[0]
    words = " and ".join(part for part in (f"task {step.task!r}" * bool(step.task), step.need) if part)
    return Found(first.category, line(f"by {words} in {source}: service {first.service_id}, {first.sentence}"))


def no_choice(category: str, error: Exception) -> str:
    """The sentence of a category that nothing can be chosen in."""
    return f"category {category}: {error}; `counterfoil services` lists what is offered"


def check_inputs(workflow: Workflow) -> None:
    """Raise UserError for an input that cannot be sent, where that can be known before an earlier step is paid."""
    for step in workflow.steps:
        if (step.form or step.category) and not any(references(step.input)):
            try:
                _request(step, step.category, resolve(step.input, {}))
            except UserError as error:
                raise UserError(f"Step {step.id}: {error}") from error


def _request(step: Step, category: str, value: Any) -> CallRequest:  # noqa: ANN401
    form = step.form or form_of(category)
    return encode(form, value, path=step.path, method=step.method, tool=step.tool_of(category))


def job_of(run_id: str, workflow: Workflow, step: Step, row: StepRow) -> Job:
    """What the runner is to do for a step."""
    request = _request(step, row.category, row.input)
    return Job(
        run_id=run_id,
        step_id=step.id,
        category=row.category,
        requests=(request,) * step.calls,
        form=step.form or form_of(row.category),
        need=step.need,
        task=step.task,
        tool=step.tool_of(row.category),
        price_cap=step.max_price_per_call,
        budget=step.budget,
        pinned=step.service_id,
        checks=step.judge or Checks(),
        try_both=step.try_both,
        duration=DURATION_SECONDS,
        per_run=workflow.budget,
        found_by=row.found_by or None,
    )


def _output(step: Step, done: Done) -> Any:  # noqa: ANN401
    if not done.worked:
        return None
    return list(done.outputs) if step.calls > 1 else done.outputs[0]
