"""`counterfoil index`: fill the index, follow the chain, rebuild, compare."""

from dataclasses import asdict

import click
import structlog

from counterfoil import answers
from counterfoil.cli import logs, progress
from counterfoil.cli.options import Common, answering, asking, common, example, with_settings
from counterfoil.cli.output import print_json, print_pairs, say
from counterfoil.cli.output import short as shortened
from counterfoil.cli.signals import stopped_by_signals
from indexer import service
from indexer.notices import all_of
from indexer.settings import Settings
from indexer.sync import SyncResult


@click.group()
def index() -> None:
    """The index: chain events as rows that can be asked as of any block."""


@index.command(epilog=example("counterfoil index run", "counterfoil index run --follow --log-format json"))
@click.option("--follow", is_flag=True, help="Go on following the chain until interrupted.")
@click.option("--wait", is_flag=True, help="Stand by while another process writes, and take over from it.")
@with_settings(*(name for name in Settings.model_fields if not name.startswith(("api", "node_", "agent_"))))
def run(common: Common, follow: bool, wait: bool) -> None:
    """Catch up with the chain, and follow it where asked to.

    Every setting may be given; see `counterfoil config` and docs/configuration.md. An interrupt, or SIGTERM, ends it
    after the step that it is in; a second one at once.
    """
    settings = common.settings
    logs.configure(settings.log_format)
    with logs.logged_failures(settings.log_format):
        _announce(common, follow)
        with progress.shown(as_bar=settings.log_format == "text") as shown, stopped_by_signals() as stop:
            observer = all_of(logs.Reporter(), shown)
            result = service.index_run(settings, follow, observer, stop=stop, wait=wait)
    summary = _summary(result)
    if settings.log_format == "json":
        structlog.get_logger().info("stopped", **({} if result is None else asdict(result)), message=summary)
    if common.json:
        print_json(None if result is None else asdict(result))
    else:
        click.echo(summary)


def _announce(common: Common, follow: bool) -> None:
    """Say what is about to be done, once the node was seen to be on the right chain: nothing is opened before."""
    log = structlog.get_logger()
    if common.loaded.ignored:
        names = ", ".join(common.loaded.ignored)
        log.warning("ignored", variables=common.loaded.ignored, message=f"These are no settings, and ignored: {names}.")
    plan = service.index_plan(common.settings, follow)
    aim = "following it from then on" if follow else "up to its head"
    message = (
        f"Indexing chain {plan.chain_id} from block {plan.first_block} into {plan.database}, {aim}; "
        f"asking {', '.join(plan.providers)}."
    )
    if plan.waiting:
        message += f" Waiting for a node of that chain: {plan.waiting}"
    log.info("starting", **asdict(plan), follow=follow, message=message)


def _summary(result: SyncResult | None) -> str:
    if result is None:
        return "stopped while standing by; nothing was written"
    if result.block is None:
        return "stopped before anything was indexed"
    behind = ", held: the node's head is below the index" if result.held else ""
    return (
        f"indexed to block {result.block} of {result.head}: {result.blocks} blocks, {result.logs} logs, "
        f"{result.reorgs} reorgs{behind}"
    )


@index.command(epilog=example("counterfoil index status"))
@asking
def status(common: Common) -> None:
    """Say what the index is of, and how far it is.

    With --api that is the server's index; the chain is not asked for its head.
    """
    with answering(common) as ask:
        found = ask.status()
    if common.json:
        print_json(found)
        return
    if common.settings.api:  # which is asked for its index alone
        pairs: list[tuple[str, object]] = [("server", found["database"])]
    else:
        head = "no answer" if found["head"] is None else found["head"]
        pairs = [("database", found["database"]), ("chain's head", head)]
    if found["as_of"] is None or found["status"] is None:
        print_pairs([*pairs, ("indexed", "nothing yet: run `counterfoil index run`")])
        return
    print_pairs([("chain", found["as_of"]["chain_id"]), *pairs, *_status_pairs(found["as_of"], found["status"])])


def _status_pairs(as_of: answers.AsOfBlock, status: answers.Status) -> list[tuple[str, object]]:
    return [
        ("indexed to", f"block {as_of['block']} ({shortened(as_of['hash'])})"),
        ("first block", status["first_block"]),
        ("final to", status["finalized_block"]),
        ("nodes", status["nodes"]),
        ("services", status["services"]),
        ("sessions", status["sessions"]),
        ("logs", f"{status['raw_logs']}, {status['quarantined']} in quarantine"),
        ("digest", status["digest"]),
    ]


@index.command(epilog=example("counterfoil index rebuild"))
@common
def rebuild(common: Common) -> None:
    """Make every row again from the raw logs, without the chain."""
    result = service.index_rebuild(common.settings)
    if common.json:
        print_json(asdict(result))
        return
    click.echo(f"rebuilt {result.blocks} blocks, {result.quarantined} logs in quarantine, digest {result.digest}")


@index.command(epilog=example("counterfoil index verify --against other.sqlite"))
@click.option("--against", required=True, help="The other index: a file or a database URL.")
@common
@click.pass_context
def verify(ctx: click.Context, common: Common, against: str) -> None:
    """Compare two indexes of one deployment; exit code 1 names the first block where they differ.

    Every row of both is checked against its own index's digest, so that rows edited, deleted or invented by hand are
    found, and headers and raw logs against the other's.
    """
    result = service.index_verify(common.settings, against)
    if common.json:
        print_json(asdict(result))
    elif result.differs_at is None:
        click.echo(f"both indexes agree over blocks {result.first_block} to {result.last_block}{_uncompared(result)}")
    else:
        say(f"the indexes differ from block {result.differs_at} on: {result.why}{_uncompared(result)}")
    if result.differs_at is not None:
        ctx.exit(1)


def _uncompared(result: service.Comparison) -> str:
    """What the comparison had to leave out."""
    if result.raw_logs_from == result.first_block:
        return ""
    return f"; raw logs were not compared before block {result.raw_logs_from}, where they are no longer kept"
