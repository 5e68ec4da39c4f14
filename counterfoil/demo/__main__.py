"""Run the demo: `python -m counterfoil.demo`, or `make demo`."""

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import click
from eth_account import Account
from rich.console import Console

from counterfoil.audit.model import Outcome
from counterfoil.audit.opening import open_auditor
from counterfoil.audit.range import RangeAudit, audit_range
from counterfoil.chain.keys import OWN
from counterfoil.demo import report, stage
from counterfoil.demo.cast import user_account
from counterfoil.demo.nodes import BIN
from counterfoil.demo.processes import Processes, answers, end_left, free_ports
from counterfoil.demo.story import Story
from counterfoil.receipt_store import ReceiptStore
from indexer import query
from indexer.errors import IndexerError, UserError
from indexer.query import open_store

HOME = Path(".counterfoil") / "demo"
MARK = "DEMO"
CHAIN_PORT = 8545
API_PORT = 8700
CATCH_UP_SECONDS = 60
PASSWORD = "demo"  # noqa: S105 - of the demo's own keystore


@click.command()
@click.option("--sessions", type=click.IntRange(1, 10_000), default=60, show_default=True, help="Sessions to open.")
@click.option("--keep", is_flag=True, help="Leave chain, nodes, index and API running.")
@click.option(
    "--home", type=click.Path(path_type=Path), default=HOME, show_default=True, help="Its folder; emptied first."
)
@click.option("--stop", is_flag=True, help="End what an earlier --keep left running, and do nothing else.")
def main(sessions: int, keep: bool, home: Path, stop: bool) -> None:
    """Play the whole story on a local chain, and audit every decision at the end."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, leave)
    console = Console(width=None if sys.stdout.isatty() else report.WIDTH, highlight=False)
    try:
        for name in end_left(home):
            console.print(f"Ended the earlier demo's {name}")
        if not stop:
            sys.exit(play(console, sessions, keep, home))
    except IndexerError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)


def leave(number: int, _: object) -> None:
    """Leave in order when told to end: whatever was started is ended on the way out."""
    sys.exit(128 + number)


def play(console: Console, sessions: int, keep: bool, home: Path) -> int:
    """Play, and give the exit code: 0 when every decision was replayed."""
    started = time.monotonic()
    empty(home)
    chain_port, api_port = free_ports(1, CHAIN_PORT)[0], free_ports(1, API_PORT)[0]
    environment = {
        "COUNTERFOIL_CONFIG": os.devnull,
        "COUNTERFOIL_HOME": str(home),
        "COUNTERFOIL_RPC_URL": f"http://127.0.0.1:{chain_port}",
        "COUNTERFOIL_POLL_SECONDS": "0.1",
        "COUNTERFOIL_AGENT_ALLOW_PRIVATE": "yes",
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    with Processes(home, environment) as processes:
        console.print("Setting the stage: chain, contracts, 12 operators, 5 agents, index, node servers")
        ready = stage.set_up(processes, home, chain_port)
        processes.wait("index", lambda: indexed(ready))
        console.print(f"Ready after {time.monotonic() - started:.0f} s; playing {sessions} sessions")
        with open_store(ready.settings.database_url()) as store:
            records = Story(ready, store, console.print).play(sessions)
            processes.wait("index", lambda: indexed(ready), CATCH_UP_SECONDS)
            console.print("Auditing every decision by state and by index")
            receipts = ReceiptStore(home / "receipts")
            audit = audit_all(ready)
            report.show(console, store, receipts, records, audit)
        console.print(f"Took {time.monotonic() - started:.0f} s")
        if keep:
            keep_running(console, processes, environment, api_port)
    replayed = audit.outcome is Outcome.OK and len(audit.audits) == sessions
    return 0 if replayed else 1


def indexed(ready: stage.Stage) -> bool:
    """Whether the index is at the chain's head."""
    head = ready.chain.head()
    try:
        with open_store(ready.settings.database_url()) as store:
            return query.as_of(store).hash == head.hash
    except UserError:
        return False


def audit_all(ready: stage.Stage) -> RangeAudit:
    """Audit every session of the chain by both ways."""
    with open_auditor(ready.settings) as auditor:
        return audit_range(auditor, 0, ready.chain.head().number)


def keep_running(console: Console, processes: Processes, environment: dict[str, str], api_port: int) -> None:
    """Start the API, leave everything up, and say how to use and end it."""
    processes.start("api", [str(BIN / "counterfoil"), "serve", "--port", str(api_port)])
    processes.wait("api", lambda: answers(api_port))
    home, rpc = environment["COUNTERFOIL_HOME"], environment["COUNTERFOIL_RPC_URL"]
    keystore = write_keystore(Path(home))
    processes.keep()
    stop = "make demo-stop" if Path(home) == HOME else f"python -m counterfoil.demo --stop --home {home}"
    console.print(
        f"\nLeft running: chain at {rpc}, API at http://127.0.0.1:{api_port}. For the commands of the README:\n"
        f"  export COUNTERFOIL_HOME={home} COUNTERFOIL_RPC_URL={rpc}\n"
        f"  export {OWN.keystore}={keystore} {OWN.password}={PASSWORD} COUNTERFOIL_AGENT_ALLOW_PRIVATE=yes\n"
        f"End it with:\n  {stop}",
        soft_wrap=True,
    )


def write_keystore(home: Path) -> Path:
    """Write the key of the demo's user, who has gas and test tokens; it guards nothing but those."""
    path = home / "user.json"
    path.write_text(json.dumps(Account.encrypt(user_account().key, PASSWORD, iterations=2)))
    return path


def empty(home: Path) -> None:
    """Empty the demo's own folder. Raises UserError for one that holds anything else: nothing of yours is removed."""
    if home.exists() and any(home.iterdir()) and not (home / MARK).exists():
        raise UserError(f"{home} is not the demo's: name an empty or a new folder with --home.")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / MARK).write_text("Made by the demo, which empties this folder when it starts.\n")


if __name__ == "__main__":
    main()
