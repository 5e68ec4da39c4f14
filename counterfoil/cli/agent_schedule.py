"""`counterfoil agent schedule`, `schedules` and `unschedule`: recurring runs."""

from dataclasses import asdict, astuple
from pathlib import Path

import click

from counterfoil.agent.desk import FOLDER, Desk
from counterfoil.agent.plan import plan
from counterfoil.agent.record import record_of
from counterfoil.agent.resuming import conclude_closed, go_on
from counterfoil.agent.runner import Runner
from counterfoil.agent.schedule import BusySchedulesError, Schedules, When, cron, every
from counterfoil.agent.workflow import load
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.cli.agent import at_desk, print_record, progress, show_plan, spending
from counterfoil.cli.options import Common, example, with_settings
from counterfoil.cli.output import print_json, print_table, say
from counterfoil.cli.signals import stopped_by_signals
from counterfoil.cli.signing import Signing, ask_first, signing
from counterfoil.routing.reasons import plural
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
@signing
@spending
def schedule(
    common: Common,
    workflow: Path | None,
    interval: str | None,
    line: str | None,
    schedule_id: str | None,
    how: Signing,
) -> None:
    """Keep a schedule for a workflow and make the runs of all schedules until stopped; each run selects afresh.

    Without a workflow, make the runs of the schedules that are kept. What was missed while nobody ran is said; of
    several missed runs of one schedule one is made. Where another process makes the runs, it takes the schedule up.
    """
    tell = progress(common)
    when = _when(workflow, interval, line, schedule_id)
    read = load(workflow) if workflow else None
    if how.dry_run and read is None:
        raise UserError("--dry-run says what one run would spend: name its workflow too.")
    name = schedule_id or (read.name if read else "")
    with at_desk(common) as desk, Schedules(_path(common), tell) as schedules:
        known = {entry.schedule_id for entry in schedules.entries()} | ({name} if when else set())
        if not known:
            raise UserError("There is no schedule: name a workflow with --every or --cron.")
        if how.dry_run and read is not None:
            show_plan(plan(desk, read), common)
            return
        if not how.yes:
            ask_first(f"Spend from {desk.address} whenever one of {plural(len(known), 'schedule')} is due?")
        if workflow is not None and when is not None:
            schedules.add(name, workflow, when)
        with stopped_by_signals() as stop:
            for entry in schedules.entries():
                tell(f"{entry.schedule_id}: {entry.workflow}, {entry.when}, next {entry.next_run}")
            _tidy(desk, common)
            try:
                schedules.serve(lambda path: _make(desk, Path(path), common), stop)
            except BusySchedulesError:
                if when is None:
                    raise
                tell(f"{name} is kept; the process that makes the runs of these schedules takes it up.")
                return
    tell("Stopped. The schedules are kept: go on with `counterfoil agent schedule`.")


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


def _when(workflow: Path | None, interval: str | None, line: str | None, schedule_id: str | None) -> When | None:
    """What the options say; None where the kept schedules are to be gone on with. Raises UserError."""
    if workflow is None:
        if interval is not None or line is not None or schedule_id is not None:
            raise UserError("--every, --cron and --id are of one workflow: name its file too.")
        return None
    if (interval is None) == (line is None):
        raise UserError("Say when: with --every 30s, or with --cron '0 7 * * 1-5'.")
    return every(interval) if interval is not None else cron(line or "")


def _make(desk: Desk, path: Path, common: Common) -> None:
    """One run, after what was left behind. A fault is said, and the next run is made all the same."""
    tell = progress(common)
    try:
        desk.chain.head()  # no run is begun that could do nothing
        _tidy(desk, common)
        runner = WorkflowRunner(desk, Runner(desk), tell)
        print_record(record_of(desk.journal, runner.go(runner.start(load(path)))), common)
    except IndexerError as error:
        tell(f"This run of {path.name} did not end: {error}")


def _tidy(desk: Desk, common: Common) -> None:
    """End what was left behind. What is in the way of that is in the way of runs too, and said when they are made."""
    tell = progress(common)
    try:
        conclude_closed(desk)
        for row in go_on(desk, tell):
            tell(f"Run {row.run_id} was cut off, and was gone on with")
            print_record(record_of(desk.journal, row), common)
    except IndexerError as error:
        tell(f"What was left behind is left for later: {error}")


def _path(common: Common) -> Path:
    return common.settings.home / FOLDER / "schedules.sqlite"
