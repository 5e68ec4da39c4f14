"""Commands that sign: who signs, what the chain would say, the question before it is sent, and what came of it."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import click
from eth_account.signers.local import LocalAccount

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import Token, Write
from counterfoil.chain.errors import RevertedError
from counterfoil.chain.keys import load_account, named_address
from counterfoil.chain.sender import Mined, Sender, estimate
from counterfoil.cli.output import amount, print_json, say
from counterfoil.cli.remedies import remedy
from counterfoil.texts import printable
from indexer.errors import UserError

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction, and in words what it does."""

    sentence: str
    write: Write


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order: each one needs those before it.

    `notes` say what follows, or what was found out by reading; `remedies` are next steps that know more of the state
    than the table does, by revert reason.
    """

    steps: Sequence[Step]
    notes: Sequence[str] = ()
    remedies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Signing:
    """What the shared options of signing commands say."""

    dry_run: bool
    yes: bool


@dataclass(frozen=True, slots=True)
class Role:
    """Who alone may do something: `address`, which `sentence` introduces, such as `node 3 is run by`."""

    sentence: str
    address: str


@dataclass(frozen=True, slots=True)
class Hand:
    """Who signs. In a dry run `key` is None, and `address` is None where nothing says who would sign."""

    address: str | None
    key: LocalAccount | None


def signing(command: Callable[..., R]) -> Callable[..., R]:
    """Add --dry-run and --yes; the command gets them as `how`."""

    @wraps(command)
    def with_how(*arguments: Any, dry_run: bool, yes: bool, **options: Any) -> R:  # noqa: ANN401
        return command(*arguments, how=Signing(dry_run, yes), **options)

    wrapped = click.option("--yes", is_flag=True, help="Send without asking.")(with_how)
    return click.option("--dry-run", is_flag=True, help="Say what would be sent and whether the chain would take it.")(
        wrapped
    )


def account() -> LocalAccount:
    """The account of the environment's key or keystore. Raises ChainError when there is none."""
    ask = (lambda: str(click.prompt("Password of the keystore", hide_input=True))) if sys.stdin.isatty() else None
    return load_account(os.environ, ask)


def see_that_somebody_is_there() -> None:
    """Raise UserError without a terminal to ask on."""
    if not sys.stdin.isatty():
        raise UserError("Nothing was sent: say --yes to send without being asked, or --dry-run to see what would be.")


def ask_first(question: str) -> None:
    """Ask before anything is signed. Raises UserError without a terminal to ask on, and for a no."""
    see_that_somebody_is_there()
    if not click.confirm(question):
        raise UserError("Nothing was sent.")


def hand(how: Signing, role: Role | None = None, stated: str | None = None) -> Hand:
    """Who signs: the environment's key. A dry run opens no keystore, and without a key goes by `stated` or the role.

    Raises UserError where the key is not that of the role, or not the one that was stated.
    """
    key = None if how.dry_run else account()
    address = named_address(os.environ) if key is None else str(key.address).lower()
    if address is None:
        return Hand(stated or (role.address if role else None), None)
    if stated not in (None, address):
        raise UserError(f"The key is of {address}, --from names {stated}: leave --from out, or set the other key.")
    if role is not None and address != role.address:
        raise UserError(
            f"{role.sentence} {role.address}, this key is of {address}: "
            "set COUNTERFOIL_KEYSTORE to the file of the first one."
        )
    return Hand(address, key)


def allowing(token: Token, spender: str, owner: str | None, needed: int) -> Plan:
    """Let a contract take an amount of a token, where it may not yet; the notes say what was read.

    Raises UserError when the owner does not hold so much.
    """
    step = Step(f"let {spender} take {amount(needed)} of the token {token.address}", token.approve(spender, needed))
    if owner is None:
        return Plan([step], ["Balance and allowance were not looked at, since nobody is named: give --from ADDRESS."])
    held = token.balance_of(owner)
    if held < needed:
        raise UserError(
            f"{owner} holds {amount(held)} of the stake token {token.address}, and {amount(needed)} are needed: "
            f"send it {amount(needed - held)} more, or stake less."
        )
    note = f"{owner} holds {amount(held)} of the token {token.address}, which is enough."
    return Plan([] if token.allowance(owner, spender) >= needed else [step], [note])


@dataclass(frozen=True, slots=True)
class Operation:
    """One run of a command that signs: on which chain, and how it is carried out and told."""

    chain: Chain
    how: Signing
    as_json: bool

    def carry_out(self, plan: Plan, by: Hand) -> list[Mined]:
        """Ask the chain, then the person, then send the steps in order; nothing comes back from a dry run.

        Raises UserError with the next step, when the chain refuses or nobody says yes.
        """
        gas = first_gas(plan, by.address)
        if by.key is None:
            _tell_only(self.chain, plan, by.address, gas, self.as_json)
            return []
        if self.chain.balance(by.key.address) == 0:
            raise UserError(f"{by.address} holds nothing of the chain's own coin to pay gas with: send it some.")
        if not self.how.yes:
            _confirm(plan, by.key.address)
        return _send(self.chain, plan, by.key, self.as_json)

    def finish(self, document: Mapping[str, Any], sent: Sequence[Mined], sentence: str, next_step: str) -> None:
        """Say what came of it, and on a line of its own, to be copied, the command that comes next."""
        if self.as_json:
            print_json({**document, "transactions": transactions(sent)})
            return
        say(sentence)
        click.echo(f"Next: {next_step}")


def first_gas(plan: Plan, sender: str | None) -> int | None:
    """The gas of the first step, None where there is no step or nobody to send it. Raises UserError for a refusal."""
    if sender is None or not plan.steps:
        return None
    step = plan.steps[0]
    try:
        return estimate(step.write, sender)
    except RevertedError as error:
        raise refusal(error, step, plan.remedies) from error


def refusal(error: RevertedError, step: Step, remedies: Mapping[str, str]) -> UserError:
    """The sentence of a refusal, with the next step."""
    next_step = remedies.get(error.reason) or remedy(error.reason)
    return UserError(f"The chain refuses to {step.sentence}: {error.reason or 'it gives no reason'}. {next_step}")


def transactions(mined: Sequence[Mined]) -> list[dict[str, Any]]:
    """Sent transactions as JSON values."""
    return [{"transaction": one.transaction, "block": one.block, "gas_used": one.gas_used} for one in mined]


def _tell_only(chain: Chain, plan: Plan, sender: str | None, gas: int | None, as_json: bool) -> None:
    """What a dry run prints. Only the first step can be asked of the chain: the others need it to be mined."""
    notes = [*plan.notes]
    if sender is not None and chain.balance(sender) == 0:
        notes.append(f"{sender} holds nothing of the chain's own coin to pay gas with: send it some before.")
    gases = [gas, *(None for _ in plan.steps[1:])]
    if as_json:
        steps = [
            {"sentence": step.sentence, "accepted": None if one is None else True, "gas": one}
            for step, one in zip(plan.steps, gases, strict=False)
        ]
        print_json({"dry_run": True, "from": sender, "steps": steps, "notes": notes})
        return
    for number, (step, one) in enumerate(zip(plan.steps, gases, strict=False), start=1):
        say(f"{number}. {step.sentence}: {_asked(number, one, sender)}")
    for note in notes:
        say(note)
    say("Nothing was sent: this was a dry run. To send it, leave --dry-run out.")


def _asked(number: int, gas: int | None, sender: str | None) -> str:
    if gas is not None:
        return f"the chain takes it from {sender}, for some {amount(gas)} gas"
    if number > 1:
        return "not asked of the chain, because it needs the step before it"
    return "not asked of the chain, because nobody is named who sends it"


def _confirm(plan: Plan, address: str) -> None:
    """Show the steps and ask. Raises UserError without a terminal to ask on, and for a no."""
    see_that_somebody_is_there()
    for number, step in enumerate(plan.steps, start=1):
        say(f"{number}. {step.sentence}")
    for note in plan.notes:
        say(note)
    ask_first(f"Send this from {address}?")


def _send(chain: Chain, plan: Plan, key: LocalAccount, as_json: bool) -> list[Mined]:
    sender = Sender(chain, key)
    mined = []
    for step in plan.steps:
        try:
            mined.append(sender.send(step.write))
        except RevertedError as error:
            raise refusal(error, step, plan.remedies) from error
        # On stderr where stdout is one JSON document: should a later step fail, what was sent is told all the same.
        done = f"done: {step.sentence} (block {mined[-1].block}, {mined[-1].gas_used:,} gas)"
        click.echo(printable(done), err=as_json)
    return mined
