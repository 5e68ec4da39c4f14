"""One call, as a workflow of one step: what the command line and a model in mid-run ask for."""

import json
from collections.abc import Callable
from typing import Any, Final

from counterfoil.agent.desk import Desk
from counterfoil.agent.journal import RunRow
from counterfoil.agent.resuming import conclude_closed
from counterfoil.agent.runner import Runner
from counterfoil.agent.workflow import Workflow, read
from counterfoil.agent.workflows import WorkflowRunner
from indexer.errors import UserError

STEP: Final = "call"


def one_step(budget: int | None, **step: Any) -> Workflow:  # noqa: ANN401
    """A workflow of one step, whose fields are a step's; an empty text says nothing, but as the input.

    `budget` bounds the step and the run. Raises WorkflowError.
    """
    given = {name: value for name, value in step.items() if value is not None and (value != "" or name == "input")}
    bounds = {} if budget is None else {"budget": budget}
    document = {"name": STEP, **bounds, "steps": [{"id": STEP, **bounds, **given}]}
    return read(json.dumps(document).encode(), "of this call")


def make(desk: Desk, workflow: Workflow, say: Callable[[str], None] = lambda _: None) -> RunRow:
    """Run a workflow to its end, after ending the sessions that were left behind.

    Raises UserError that says how to go on where something of our own is in the way: the run is kept then.
    """
    conclude_closed(desk)
    runner = WorkflowRunner(desk, Runner(desk), say)
    row = runner.start(workflow)
    try:
        return runner.go(row)
    except UserError as error:
        hint = f"Run {row.run_id} is kept: mend that, then go on with `counterfoil agent resume`."
        raise UserError(f"{str(error).rstrip('.')}. {hint}") from error
