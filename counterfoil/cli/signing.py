"""Commands that sign: what would be sent, the question before it is sent, and what came of it."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from eth_account.signers.local import LocalAccount

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import Write
from counterfoil.chain.keys import load_account
from counterfoil.chain.sender import Mined, Sender
from counterfoil.cli.output import print_json
from indexer.errors import UserError

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction, and in words what it does."""

    sentence: str
    write: Write


@dataclass(frozen=True, slots=True)
class Signing:
    """What the shared options of signing commands say."""

    dry_run: bool
    yes: bool


def signing(command: Callable[..., R]) -> Callable[..., R]:
    """Add --dry-run and --yes; the command gets them as `dry_run` and `yes`."""
    command = click.option("--yes", is_flag=True, help="Send without asking.")(command)
    return click.option("--dry-run", is_flag=True, help="Say what would be sent, and send nothing.")(command)


def account() -> LocalAccount:
    """The account of the environment's key or keystore. Raises ChainError when there is none."""
    ask = (lambda: str(click.prompt("Password of the keystore", hide_input=True))) if sys.stdin.isatty() else None
    return load_account(os.environ, ask)


def environment() -> Mapping[str, str]:
    """Where keys come from."""
    return os.environ


def ask_first(question: str) -> None:
    """Ask before anything is signed. Raises UserError without a terminal to ask on, and for a no."""
    if not sys.stdin.isatty():
        raise UserError("Nothing was sent: say --yes to send without being asked, or --dry-run to see what would be.")
    if not click.confirm(question):
        raise UserError("Nothing was sent.")


def say_only(steps: Sequence[Step], as_json: bool) -> None:
    """What --dry-run prints."""
    if as_json:
        print_json({"dry_run": True, "steps": [step.sentence for step in steps]})
        return
    for number, step in enumerate(steps, start=1):
        click.echo(f"{number}. {step.sentence}")
    click.echo("Nothing was sent: this was a dry run.")


def carry_out(chain: Chain, key: LocalAccount, steps: Sequence[Step], options: Signing, as_json: bool) -> list[Mined]:
    """Ask, then send the steps in order. Raises UserError when nobody says yes."""
    if not options.yes:
        confirm(steps, key.address)
    sender = Sender(chain, key)
    mined = []
    for step in steps:
        mined.append(sender.send(step.write))
        if not as_json:
            click.echo(f"done: {step.sentence} (block {mined[-1].block}, {mined[-1].gas_used:,} gas)")
    return mined


def confirm(steps: Sequence[Step], address: str) -> None:
    """Show the steps and ask. Raises UserError without a terminal to ask on, and for a no."""
    for number, step in enumerate(steps, start=1):
        click.echo(f"{number}. {step.sentence}")
    ask_first(f"Send this from {address}?")


def transactions(mined: Sequence[Mined]) -> list[dict[str, Any]]:
    """Sent transactions as JSON values."""
    return [{"transaction": one.transaction, "block": one.block, "gas_used": one.gas_used} for one in mined]
