"""`counterfoil agent runs`, `show`, `pin` and `status`: what was done, and what it cost."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from counterfoil.agent.desk import FOLDER, policy_of
from counterfoil.agent.journal import Journal, RunRow
from counterfoil.agent.record import pinned_rerun, record_of
from counterfoil.agent.workflow import dump
from counterfoil.cli.agent import at_desk, print_record, spending
from counterfoil.cli.options import Common, example, limit, with_settings
from counterfoil.cli.output import amount, print_json, print_pairs, print_table, say
from counterfoil.files import write_whole
from indexer.errors import QuestionError, UserError

local = with_settings("home")


@click.command(epilog=example("counterfoil agent runs --limit 5"))
@limit
@local
def runs(common: Common, limit: int) -> None:
    """List the latest runs, the newest first."""
    journal = _journal(common)
    records = [record_of(journal, row) for row in journal.runs(limit)]
    if common.json:
        print_json({"runs": records})
        return
    columns = ("run", "workflow", "status", "started", ">paid", "why it failed")
    print_table(
        columns,
        (
            (one["run_id"], one["workflow"], one["status"], one["started"][:19], amount(one["paid"]), one["reason"])
            for one in records
        ),
    )


@click.command(epilog=example("counterfoil agent show RUN"))
@click.argument("run_id")
@local
def show(common: Common, run_id: str) -> None:
    """Show a run: each step's output, spend, sessions, services and receipts."""
    journal = _journal(common)
    print_record(record_of(journal, _run(journal, run_id)), common)


@click.command(epilog=example("counterfoil agent pin RUN --output pinned.yaml"))
@click.argument("run_id")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write here; without it, print.")
@local
def pin(common: Common, run_id: str, output: Path | None) -> None:
    """Make a workflow of a run that pins every step to the service that served it."""
    journal = _journal(common)
    text = dump(pinned_rerun(journal, _run(journal, run_id)))
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        write_whole(output, text.encode())
    except OSError as error:
        raise UserError(f"{output} cannot be written ({error.strerror}): name another with --output.") from error
    if common.json:
        print_json({"run_id": run_id, "output": str(output)})
        return
    say(f"Written to {output}. Run it with: counterfoil agent run {output}")


@click.command(epilog=example("counterfoil agent status"))
@spending
def status(common: Common) -> None:
    """Show the wallet: what it holds, what is credited to it, its caps, and what it spent today."""
    day = datetime.now(UTC).date()
    with at_desk(common) as desk:
        _, why = desk.markets.now()
        found = {
            "address": desk.address,
            "balance": str(desk.token.balance_of(desk.address)),
            "credit": str(desk.manager.credit_of(desk.address)),
            "has_gas": desk.wallet.pays(),
            "spent_today": str(desk.spending.spent(day=day).total),
            "unfinished_runs": len(desk.journal.unfinished(desk.address)),
            "closing_sessions": len(desk.journal.closing(desk.address)),
            "market": f"the chain and own memory, since {why}" if why else "the index",
        }
    caps = {name: None if value is None else str(value) for name, value in asdict(policy_of(common.settings)).items()}
    if common.json:
        print_json({**found, "caps": caps})
        return
    shown = {name: amount(cap) if cap is not None else "none" for name, cap in caps.items()}
    amounts = {name: amount(str(found[name])) for name in ("balance", "credit", "spent_today")}
    pairs = {**found, **amounts, "caps": ", ".join(f"{name.replace('_', ' ')} {cap}" for name, cap in shown.items())}
    print_pairs((name.replace("_", " "), value) for name, value in pairs.items())


def _journal(common: Common) -> Journal:
    return Journal(common.settings.home / FOLDER / "journal.sqlite")


def _run(journal: Journal, run_id: str) -> RunRow:
    row = journal.run(run_id)
    if row is None:
        raise QuestionError(f"There is no run {run_id[:80]!r}: `counterfoil agent runs` lists them.")
    return row
