"""`counterfoil audit`: replay decisions. Exit code 0 ok, 1 mismatch, 2 cannot be checked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from counterfoil import answers
from counterfoil.audit.model import By, Outcome, Part
from counterfoil.audit.opening import open_auditor
from counterfoil.audit.range import Progress as OnProgress
from counterfoil.audit.range import RangeAudit, audit_range
from counterfoil.audit.report import EXIT_CODES, ages_document, range_document, session_document
from counterfoil.cli.options import Common, answering, asking, common, example
from counterfoil.cli.output import amount, print_json, print_table, say, short
from counterfoil.cli.output import console as screen
from counterfoil.routing.reasons import percent
from counterfoil.texts import printable

_MARKS: Final = {Outcome.OK: "ok", Outcome.NOTE: "note", Outcome.MISMATCH: "MISMATCH", Outcome.UNKNOWN: "?"}
_FAULTS_SHOWN: Final = 20

by_option = click.option(
    "--by",
    type=click.Choice(["state", "index", "both"]),
    show_default="both",
    help="Replay by chain state, by the index's rows, or by both.",
)


@click.group()
def audit() -> None:
    """Replay decisions by chain state and by the index. Exit codes: 0 ok, 1 mismatch, 2 cannot be checked."""


@audit.command(epilog=example("counterfoil audit session 1", "counterfoil audit session 1 --by index"))
@click.argument("session")
@by_option
@asking
@click.pass_context
def session(ctx: click.Context, common: Common, session: str, by: By | None) -> None:
    """Replay one decision, named by the session's id, an unambiguous start of it, or its number in the index.

    Covers what the session committed to when it was opened: its terms, snapshot, seed, candidates, choice, price and
    receipt. What came later and what decides nothing (deposit, expires_at, status, closes_at, paid, refunded, calls,
    number, a node's endpoint) is compared by `counterfoil index verify`.

    With --api the server replays it by its own index and receipts: that is its word, and no proof.
    """
    with answering(common) as ask:
        found = ask.audit(session, by)
    if common.json:
        print_json(found)
    else:
        _print_session(found)
    _tell_unchecked(found)
    ctx.exit(EXIT_CODES[Outcome(found["outcome"])])


@audit.command(name="range", epilog=example("counterfoil audit range 0 100 --by state"))
@click.argument("first_block", type=click.IntRange(0))
@click.argument("last_block", type=click.IntRange(0))
@by_option
@common
@click.pass_context
def range_(ctx: click.Context, common: Common, first_block: int, last_block: int, by: By | None) -> None:
    """Replay every decision of the sessions opened in blocks FIRST_BLOCK to LAST_BLOCK."""
    with open_auditor(common.settings, by or "both") as auditor, _progress() as progress:
        found = audit_range(auditor, first_block, last_block, progress)
    if common.json:
        print_json(range_document(found))
    else:
        print_range(found)
    unchecked = [one for one in found.audits if one.outcome is Outcome.UNKNOWN]
    if unchecked:
        _tell_unchecked(session_document(unchecked[0]))
    ctx.exit(EXIT_CODES[found.outcome])


def _print_session(found: answers.Audit) -> None:
    say(f"session {found['session_id']}")
    facts, category = found["session"], found["category"]
    if facts is not None:
        of = f"service {facts['service_id']}{f' ({category})' if category else ''}"
        say(f"{of}, draw {facts['nonce']} of {facts['client']}, attempt {facts['attempt']}")
    rows = (
        (check["part"], check["name"], _MARKS[Outcome(check["outcome"])], check["sentence"])
        for check in found["checks"]
    )
    print_table(("by", "checked", "result", "what"), rows)
    parts = (f"{part}: {found['by'][part]}" for part in Part if found["by"].get(part))
    say(f"{found['outcome']} ({', '.join(parts)})")
    if found["first_difference"]:
        say(f"first difference: {found['first_difference']}")


def print_range(found: RangeAudit) -> None:
    """Print a range's shares, clients, faults and totals."""
    say(f"blocks {found.first_block} to {found.last_block}: {len(found.audits)} sessions")
    if found.audits:
        _print_shares(found)
        _print_clients(found)
        ages = ages_document(found) or {}
        click.echo(f"attempts that skipped a node without opening a session: {found.skipped}")
        click.echo(f"snapshot age in blocks: {ages['least']} to {ages['greatest']}, median {ages['median']}")
        _print_faults(found)
    click.echo(
        f"{found.count(Outcome.OK)} ok, {found.count(Outcome.MISMATCH)} mismatches, "
        f"{found.count(Outcome.UNKNOWN)} cannot be checked"
    )
    click.echo(found.summary)


def _print_shares(found: RangeAudit) -> None:
    print_table(
        ("category", ">service", ">node", ">sessions", ">observed", ">promised", ">skipped"),
        (
            (
                share.category,
                share.service_id,
                share.node_id,
                share.sessions,
                percent(share.observed),
                percent(share.promised),
                share.skipped,
            )
            for share in found.shares
        ),
        title="share of each service beside what its weights promised",
    )


def _print_clients(found: RangeAudit) -> None:
    print_table(
        ("client", ">sessions", ">draws", ">skipped attempts", ">oldest snapshot in blocks", "caps"),
        (
            (
                short(client.client),
                client.sessions,
                client.draws,
                client.skipped,
                client.oldest_snapshot,
                ", ".join(amount(cap) for cap in client.caps) or "none",
            )
            for client in found.clients
        ),
        title="what no receipt proves: skipped attempts, caps and snapshots of each client",
    )


def _print_faults(found: RangeAudit) -> None:
    faults = [one for one in found.audits if one.outcome is not Outcome.OK]
    for one in faults[:_FAULTS_SHOWN]:
        why = one.first_difference or _first_unchecked(session_document(one))
        say(f"{short(one.session_id)} {one.outcome}: {why}")
    if len(faults) > _FAULTS_SHOWN:
        click.echo(f"and {len(faults) - _FAULTS_SHOWN} more: see --json")


def _tell_unchecked(found: answers.Audit) -> None:
    if found["outcome"] == Outcome.UNKNOWN:
        why = f"Session {short(found['session_id'])} cannot be checked: {_first_unchecked(found)}"
        click.echo(printable(why), err=True)


def _first_unchecked(found: answers.Audit) -> str:
    sentences = (check["sentence"] for check in found["checks"] if check["outcome"] == Outcome.UNKNOWN)
    return next(sentences, "nothing was checked")


@contextmanager
def _progress() -> Iterator[OnProgress | None]:
    terminal = screen(err=True)
    if not terminal.is_terminal:
        yield None
        return
    columns = (TextColumn("auditing"), BarColumn(), MofNCompleteColumn(), TextColumn("sessions"))
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task("auditing", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield show
