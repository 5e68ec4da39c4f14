"""`counterfoil agent call`, `run` and `resume`: what an agent pays for."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from counterfoil.agent.calling import make, one_step
from counterfoil.agent.desk import Desk, open_desk
from counterfoil.agent.journal import RunRow
from counterfoil.agent.plan import Plan, plan
from counterfoil.agent.record import RunRecord, SessionRecord, record_of
from counterfoil.agent.resuming import conclude_closed, go_on
from counterfoil.agent.workflow import Workflow, load
from counterfoil.agent.workflows import DONE
from counterfoil.chain.keys import load_relayer
from counterfoil.cli.lazy import LazyGroup
from counterfoil.cli.options import Common, example, with_settings
from counterfoil.cli.output import amount, print_json, print_pairs, print_table, say, short
from counterfoil.cli.signing import Signing, account, ask_first, see_that_somebody_is_there, signing
from counterfoil.routing.reasons import plural
from counterfoil.texts import printable
from indexer.errors import UserError
from indexer.settings import Settings

agent = LazyGroup(
    "agent",
    {
        "call": "counterfoil.cli.agent:call",
        "pin": "counterfoil.cli.agent_runs:pin",
        "resume": "counterfoil.cli.agent:resume",
        "run": "counterfoil.cli.agent:run",
        "runs": "counterfoil.cli.agent_runs:runs",
        "schedule": "counterfoil.cli.agent_schedule:schedule",
        "schedules": "counterfoil.cli.agent_schedule:schedules",
        "show": "counterfoil.cli.agent_runs:show",
        "status": "counterfoil.cli.agent_runs:status",
        "unschedule": "counterfoil.cli.agent_schedule:unschedule",
    },
    help="Find services, pay for calls, judge and rate them; runs, schedules and what they cost.",
)
SETTINGS = tuple(name for name in Settings.model_fields if name.startswith("agent_"))
spending = with_settings("home", "rpc_url", "database", "deployment", *SETTINGS)


@contextmanager
def at_desk(common: Common) -> Iterator[Desk]:
    """Lay out the tools of the environment's account."""
    with open_desk(common.settings, account(), load_relayer(os.environ)) as desk:
        yield desk


@click.command(epilog=example("counterfoil agent run market-brief.yaml --dry-run"))
@click.argument("workflow", type=click.Path(path_type=Path, dir_okay=False))
@signing
@spending
def run(common: Common, workflow: Path, how: Signing) -> None:
    """Run a workflow: each step finds a service, opens a session, pays by vouchers, settles, rates and attests.

    What was begun when the process is killed is gone on with by `counterfoil agent resume`.
    """
    read = load(workflow)
    with at_desk(common) as desk:
        spend(desk, read, common, how)


@click.command(
    epilog=example(
        """counterfoil agent call data:crypto-price --input '{"symbol": "BTC"}' --max-price 2000 --dry-run"""
    )
)
@click.argument("category", required=False, default="")
@click.option("--task", default="", help="What is to be done, in a few plain words; finds the category too.")
@click.option("--need", default="", help="The kind of job, such as data:crypto.")
@click.option("--input", "said", default="null", help="What is sent: JSON, or plain text.")
@click.option("--calls", type=click.IntRange(1, 100), default=1, show_default=True, help="How often it is sent.")
@click.option("--service-id", type=click.IntRange(1), help="Pin this service.")
@click.option("--max-price", type=click.IntRange(0), help="Soft cap on the price a call, in base units.")
@click.option("--budget", type=click.IntRange(0), help="The most that may be deposited, in base units.")
@click.option("--tool", default="", help="The tool of an MCP service.")
@click.option("--path", default="", help="A path below the service's own URL.")
@click.option("--method", type=click.Choice(["GET", "POST", "PUT", "PATCH", "DELETE"]), default="POST", help="HTTP.")
@click.option("--try-both", is_flag=True, help="Try the two first of the order, and keep the better answer.")
@signing
@spending
def call(
    common: Common,
    how: Signing,
    said: str,
    max_price: int | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Call one service of a category, or the best one for a task."""
    workflow = one_step(**given, input=_json_or_text(said), max_price_per_call=max_price)
    with at_desk(common) as desk:
        spend(desk, workflow, common, how)


@click.command(epilog=example("counterfoil agent resume"))
@spending
def resume(common: Common) -> None:
    """Go on with every run that was cut off, and end the sessions whose node did not settle."""
    with at_desk(common) as desk:
        ended = conclude_closed(desk)
        records = [record_of(desk.journal, row) for row in go_on(desk, progress(common))]
    if common.json:
        print_json({"runs": records, "sessions_ended": ended})
        return
    for record in records:
        show_record(record)
    say(f"{plural(len(records), 'run')} gone on with, {plural(len(ended), 'session')} ended.")


def spend(desk: Desk, workflow: Workflow, common: Common, how: Signing) -> None:
    """Show what a run would spend, ask, and make it. Raises UserError where it did not work."""
    if how.dry_run:
        show_plan(plan(desk, workflow), common)
        return
    if not how.yes:
        see_that_somebody_is_there()
        planned = plan(desk, workflow)
        show_plan(planned, common)
        ask_first(f"Spend up to {amount(planned.deposit)} from {desk.address}?")
    show_end(desk, make(desk, workflow, progress(common)), common)


def show_end(desk: Desk, row: RunRow, common: Common) -> None:
    """Print a run's record. Raises UserError where the run failed, once the record is printed."""
    print_record(record_of(desk.journal, row), common)
    if row.status != DONE:
        raise UserError(f"Run {row.run_id} failed: {row.reason}. See it with `counterfoil agent show {row.run_id}`.")


def show_plan(planned: Plan, common: Common) -> None:
    """Print what would be spent and where."""
    if common.json:
        print_json({"dry_run": True, **_plan_document(planned)})
        return
    for step in planned.steps:
        order = ", ".join(f"{service_id} at {amount(price)}" for service_id, price in step.order)
        say(f"{step.step_id}: {step.category}, up to {amount(step.deposit)}; order {order}")
        say(f"  {step.found_by + '; ' if step.found_by else ''}{step.reason}")
        if step.refused:
            say(f"  would not be opened: {step.refused}")
    say(f"All together up to {amount(planned.deposit)}." + (f" {planned.lacks}" if planned.lacks else ""))
    say("The draw is made anew when the run begins. Nothing was signed or sent.")


def print_record(record: RunRecord, common: Common) -> None:
    """Print a run's record as the user wants it."""
    if common.json:
        print_json(record)
    else:
        show_record(record)


def show_record(record: RunRecord) -> None:
    """Print a run's record."""
    print_pairs(
        [
            ("run", record["run_id"]),
            ("workflow", record["workflow"]),
            ("status", record["status"] + (f": {record['reason']}" if record["reason"] else "")),
            ("paid", amount(record["paid"])),
        ]
    )
    rows = [(step["step_id"], session) for step in record["steps"] for session in step["sessions"]]
    if rows:
        print_table(("step", ">service", "session", "receipt", ">paid", ">score", "state"), map(_row, rows))
    for step in record["steps"]:
        if step["output"] is not None:
            say(f"{step['step_id']}, {step['reason']}: {_shown(step['output'])}")


def _row(named: tuple[str, SessionRecord]) -> tuple[object, ...]:
    step_id, session = named
    score = "-" if session["score"] is None else session["score"]
    return (
        step_id, session["service_id"], short(session["session_id"]), short(session["receipt"]),
        amount(session["paid"]), score, session["failure"] or session["state"],
    )  # fmt: skip


def _shown(output: Any) -> str:  # noqa: ANN401
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return text if len(text) <= 2000 else f"{text[:2000]}… (all of it with --json)"


def _plan_document(planned: Plan) -> dict[str, Any]:
    steps = [
        {
            "step_id": step.step_id,
            "category": step.category,
            "found_by": step.found_by,
            "order": [{"service_id": service_id, "price": str(price)} for service_id, price in step.order],
            "deposit": str(step.deposit),
            "reason": step.reason,
            "refused": step.refused,
        }
        for step in planned.steps
    ]
    return {"steps": steps, "deposit": str(planned.deposit), "lacks": planned.lacks}


def _json_or_text(given: str) -> Any:  # noqa: ANN401
    try:
        return json.loads(given)
    except ValueError:
        return given


def progress(common: Common) -> Callable[[str], None]:
    """Where progress is told: on stderr where stdout is JSON."""
    return (lambda sentence: click.echo(printable(sentence), err=True)) if common.json else say
