"""One call, as a workflow of one step: what the command line and a model in mid-run ask for."""

import json
from typing import Any, Final

from counterfoil.agent.desk import Desk
from counterfoil.agent.record import RunRecord, record_of
from counterfoil.agent.resuming import conclude_closed
from counterfoil.agent.runner import Runner
from counterfoil.agent.workflow import Workflow, read
from counterfoil.agent.workflows import WorkflowRunner

STEP: Final = "call"


def one_step(budget: int | None, **step: Any) -> Workflow:  # noqa: ANN401
    """A workflow of one step, whose fields are a step's; those that are None or empty are left out.

    `budget` bounds the step and the run. Raises WorkflowError.
    """
    given = {name: value for name, value in step.items() if value not in (None, "", False)}
    bounds = {} if budget is None else {"budget": budget}
    document = {"name": STEP, **bounds, "steps": [{"id": STEP, **bounds, **given}]}
    return read(json.dumps(document).encode(), "of this call")


def make(desk: Desk, workflow: Workflow) -> RunRecord:
    """Run a workflow to its end, and give its record."""
    conclude_closed(desk)
    runner = WorkflowRunner(desk, Runner(desk), lambda _: None)
    return record_of(desk.journal, runner.go(runner.start(workflow)))
