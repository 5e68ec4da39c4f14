"""`counterfoil agent schedule`, `schedules` and `unschedule`: recurring runs."""

import signal
import threading
from dataclasses import asdict, astuple
from pathlib import Path

import click

from counterfoil.agent.desk import FOLDER, Desk
from counterfoil.agent.record import record_of
from counterfoil.agent.resuming import conclude_closed, go_on
from counterfoil.agent.runner import Runner
from counterfoil.agent.schedule import Schedules, cron, every
from counterfoil.agent.workflow import load
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.cli.agent import at_desk, show_record, spending
from counterfoil.cli.options import Common, example, with_settings
from counterfoil.cli.output import print_json, print_table, say
from counterfoil.cli.signing import ask_first
from indexer.errors import IndexerError, UserError

local = with_settings("home")


@click.command(
    epilog=example(
        "counterfoil agent schedule market-brief.yaml --every 30s --yes",
        "counterfoil agent schedule market-brief.yaml --cron '0 7 * * 1-5' --yes",
    )
)
@click.argument("workflow", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--every", "interval", help="How often, such as 30s, 5m, 2h or 1d.")
@click.option("--cron", "line", help="When, as the five fields of a crontab line, in UTC.")
@click.option("--id", "schedule_id", help="The schedule's name; by default the workflow's own.")
@click.option("--yes", is_flag=True, help="Spend without asking, within the caps.")
@spending
def schedule(
    common: Common,
    workflow: Path | None,
    interval: str | None,
    line: str | None,
    schedule_id: str | None,
    yes: bool,
) -> None:
    """Keep a schedule for a workflow and make the runs of all schedules until stopped; each run selects afresh.

    Without a workflow, make the runs of the schedules that are kept. What was missed while nobody ran is said; of
    several missed runs of one schedule one is made.
    """
    stop = threading.Event()
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda *_: stop.set())
    with at_desk(common) as desk, Schedules(_path(common), say) as schedules:
        if workflow is not None:
            _add(schedules, workflow, interval, line, schedule_id)
        if not schedules.entries():
            raise UserError("There is no schedule: name a workflow with --every or --cron.")
        if not yes:
            ask_first(f"Spend from {desk.address} whenever one of {len(schedules.entries())} schedules is due?")
        _tidy(desk)
        for entry in schedules.entries():
            say(f"{entry.schedule_id}: {entry.workflow}, {entry.when}, next {entry.next_run}")
        schedules.serve(lambda path: _make(desk, Path(path), common), stop)
    say("Stopped. The schedules are kept: go on with `counterfoil agent schedule`.")


@click.command(epilog=example("counterfoil agent schedules"))
@local
def schedules(common: Common) -> None:
    """List the schedules that are kept."""
    with Schedules(_path(common), say) as kept:
        entries = kept.entries()
    if common.json:
        print_json({"schedules": [asdict(entry) for entry in entries]})
        return
    print_table(("schedule", "workflow", "when", "next run"), map(astuple, entries))


@click.command(epilog=example("counterfoil agent unschedule market-brief"))
@click.argument("schedule_id")
@local
def unschedule(common: Common, schedule_id: str) -> None:
    """Take a schedule out."""
    with Schedules(_path(common), say) as kept:
        kept.remove(schedule_id)
    if common.json:
        print_json({"removed": schedule_id})
        return
    say(f"{schedule_id} is taken out; a scheduler that runs stops making its runs.")


def _add(schedules: Schedules, workflow: Path, interval: str | None, line: str | None, schedule_id: str | None) -> None:
    name = load(workflow).name
    if (interval is None) == (line is None):
        raise UserError("Say when: with --every 30s, or with --cron '0 7 * * 1-5'.")
    trigger = every(interval) if interval is not None else cron(line or "")
    schedules.add(schedule_id or name, workflow, trigger)


def _tidy(desk: Desk) -> None:
    """End what was left behind. What is in the way of that is in the way of runs too, and said when they are made."""
    try:
        conclude_closed(desk)
        for row in go_on(desk, say):
            say(f"Run {row.run_id} was gone on with: {row.status}")
    except IndexerError as error:
        say(f"What was left behind is left for later: {error}")


def _make(desk: Desk, path: Path, common: Common) -> None:
    """One run. A fault is said, and the next run is made all the same."""
    runner = WorkflowRunner(desk, Runner(desk), (lambda _: None) if common.json else say)
    try:
        desk.chain.head()  # no run is begun that could do nothing
        _tidy(desk)
        record = record_of(desk.journal, runner.go(runner.start(load(path))))
    except IndexerError as error:
        say(f"This run did not end: {error}")
        return
    if common.json:
        print_json(record)
    else:
        show_record(record)


def _path(common: Common) -> Path:
    return common.settings.home / FOLDER / "schedules.sqlite"
