"""`counterfoil index`: fill the index, follow the chain, rebuild, compare."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from counterfoil.cli.options import Common, common
from counterfoil.cli.output import clean, console, print_json, print_pairs, say
from counterfoil.cli.output import short as shortened
from counterfoil.documents import as_of_document
from counterfoil.reading import open_index
from indexer import service
from indexer.errors import RetryableError
from indexer.settings import Settings
from indexer.store.compare import examine
from indexer.store.database import open_store
from indexer.sync import Progress as OnProgress


@click.group()
def index() -> None:
    """The index: chain events as rows that can be asked as of any block."""


@index.command()
@click.option("--follow", is_flag=True, help="Go on following the chain until interrupted.")
@common
def run(common: Common, follow: bool) -> None:
    """Catch up with the chain, and follow it where asked to."""
    _check_chain(common.settings)
    with _progress() as progress, _stopped_by_signals() as stop:
        result = service.index_run(common.settings, follow=follow, progress=progress, stop=stop, on_retry=_tell_retry)
    if common.json:
        print_json(asdict(result))
        return
    behind = ", held: the node's head is below the index" if result.held else ""
    click.echo(
        f"indexed to block {result.block} of {result.head}: {result.blocks} blocks, {result.logs} logs, "
        f"{result.reorgs} reorgs{behind}"
    )


@index.command()
@common
def status(common: Common) -> None:
    """Say what the index is of, and how far it is."""
    found = service.index_status(common.settings)
    if common.json:
        print_json(_status_document(found))
        return
    pairs: list[tuple[str, object]] = [("database", found.database), ("chain's head", found.head or "no answer")]
    if found.as_of is None or found.status is None:
        print_pairs([*pairs, ("indexed", "nothing yet: run `counterfoil index run`")])
        return
    of = found.as_of
    print_pairs(
        [
            ("chain", of.chain_id),
            *pairs,
            ("indexed to", f"block {of.block} ({shortened(of.hash)})"),
            ("first block", found.status.first_block),
            ("final to", found.status.finalized_block),
            ("nodes", found.status.nodes),
            ("services", found.status.services),
            ("sessions", found.status.sessions),
            ("logs", f"{found.status.raw_logs}, {found.status.quarantined} in quarantine"),
            ("digest", found.status.digest),
        ]
    )


@index.command()
@common
def rebuild(common: Common) -> None:
    """Make every row again from the raw logs, without the chain."""
    result = service.index_rebuild(common.settings)
    if common.json:
        print_json(asdict(result))
        return
    click.echo(f"rebuilt {result.blocks} blocks, {result.quarantined} logs in quarantine, digest {result.digest}")


@index.command()
@click.option("--against", required=True, help="The other index: a file or a database URL.")
@common
@click.pass_context
def verify(ctx: click.Context, common: Common, against: str) -> None:
    """Compare two indexes of one deployment; exit code 1 names the first block where they differ.

    Every row of both is checked against its own index's digest, so that rows edited, deleted or invented by hand are
    found, and headers and raw logs against the other's.
    """
    result = service.index_verify(common.settings, against)
    why = None if result.differs_at is None else _why(common.settings, against)
    if common.json:
        print_json(asdict(result) | {"why": why})
    elif result.differs_at is None:
        click.echo(f"both indexes agree over blocks {result.first_block} to {result.last_block}")
    else:
        say(f"the indexes differ from block {result.differs_at} on: {why}")
    if result.differs_at is not None:
        ctx.exit(1)


def _why(settings: Settings, against: str) -> str | None:
    """What is wrong at the first block that differs, and in which index."""
    with open_index(settings) as ours, open_store(against) as theirs:
        return examine(ours, theirs).why


def _check_chain(settings: Settings) -> None:
    # Before the index is opened: a wrong or dead chain must leave no file behind.
    from counterfoil.chain.connection import connect

    connect(settings).close()


def _tell_retry(error: RetryableError, seconds: float) -> None:
    click.echo(clean(f"{error} Trying again in {seconds:g} s."), err=True)


def _status_document(found: service.IndexStatus) -> dict[str, object]:
    return {
        "database": found.database,
        "head": found.head,
        "as_of": None if found.as_of is None else as_of_document(found.as_of),
        "status": None if found.status is None else asdict(found.status),
    }


@contextmanager
def _progress() -> Iterator[OnProgress | None]:
    screen = console(err=True)
    if not screen.is_terminal:
        yield None
        return
    columns = (
        TextColumn("indexing"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("blocks"),
        TextColumn("{task.fields[rate]} logs/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("indexing", total=None, rate=0)

        def show(block: int, head: int, logs: int) -> None:
            elapsed = bar.tasks[0].elapsed or 0
            rate = round(logs / elapsed) if elapsed > 0 else 0
            bar.update(task, completed=block, total=head, rate=rate)

        yield show


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    stop = threading.Event()

    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask_to_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
