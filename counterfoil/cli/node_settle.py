"""`counterfoil node settle`: what an operator settles by hand, while its node does not run."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import click

from counterfoil.asking import open_answers
from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import SessionManager, SessionState, SessionStatus
from counterfoil.chain.sender import Mined, events
from counterfoil.cli.operating import operation
from counterfoil.cli.options import Common, common, example
from counterfoil.cli.output import amount
from counterfoil.cli.signing import Hand, Operation, Plan, Role, Signing, Step, hand, signing
from counterfoil.node.node import book_path, open_book
from counterfoil.node.vouchers import Voucher
from counterfoil.routing.reasons import plural
from indexer.errors import QuestionError, StoreError, UserError
from indexer.settings import Settings

_ID: Final = re.compile(r"0x[0-9a-f]{64}")


@click.command(epilog=example("counterfoil node settle 1 --dry-run"))
@click.argument("session")
@click.option("--zero", is_flag=True, help="Settle without a voucher: nothing is paid, and the slot is free.")
@signing
@common
def settle(common: Common, session: str, zero: bool, how: Signing) -> None:
    """Settle SESSION by the last voucher that the node took: its number, its id, or an unambiguous start of it.

    A running node settles by itself; this is for one that does not run. The whole id needs no index.
    """
    session_id = _named(common.settings, session)
    run = operation(common, how)
    state = SessionManager(run.chain).session(session_id)
    if state.status == SessionStatus.NONE:
        raise UserError(f"The chain knows no session {session_id}: see `counterfoil sessions`.")
    if state.status == SessionStatus.SETTLED:
        _finish(run, session_id, state.paid, state.calls, [])
        return
    by = hand(how, Role(f"Session {session_id} is with", state.operator))
    home = common.settings.home
    with _last(run.chain, home, state.node_id, session_id) as last:
        _settle(
            run,
            session_id,
            state,
            by,
            _checked(book_path(home, state.node_id), last, zero) or Voucher(session_id, 0, 0, b""),
        )


def _settle(run: Operation, session_id: str, state: SessionState, by: Hand, voucher: Voucher) -> None:
    settling = SessionManager(run.chain).settle(session_id, voucher.amount, voucher.calls, voucher.signature)
    calls = plural(voucher.calls, "call")
    step = Step(f"settle session {session_id} at {amount(voucher.amount)} for {calls}", settling)
    note = f"The client gets {amount(max(state.deposit - voucher.amount, 0))} of the deposit back; the session ends."
    sent = run.carry_out(Plan([step], [note]), by)
    if sent:
        ended = events(settling, sent[-1], "SessionSettled")[0]
        _finish(run, session_id, ended["paid"], ended["calls"], sent)


def _finish(run: Operation, session_id: str, paid: int, calls: int, sent: list[Mined]) -> None:
    what = "is settled" if sent else "is settled already, nothing was sent"
    run.finish(
        {"session_id": session_id, "paid": str(paid), "calls": calls},
        sent,
        f"Session {session_id} {what}: {amount(paid)} paid for {plural(calls, 'call')}.",
        "counterfoil node withdraw --earnings",
    )


def _named(settings: Settings, session: str) -> str:
    """The id of a session that a person named. Raises UserError."""
    if _ID.fullmatch(session.lower()):
        return session.lower()
    try:
        with open_answers(settings) as answers:
            return answers.session(session, None)["session"]["session_id"]
    except QuestionError:
        raise
    except StoreError as error:
        raise UserError(f"{error} Or name the session by its whole id, which needs no index.") from error


@contextmanager
def _last(chain: Chain, home: Path, node_id: int, session_id: str) -> Iterator[Voucher | None]:
    """The last voucher that a node took; its book is held until the session is settled, so that no node serves on.

    A file that is not there is not made: an empty book would say that the node took no voucher.
    """
    if not book_path(home, node_id).is_file():
        yield None
        return
    with closing(open_book(chain, home, node_id)) as book:
        record = book.record(session_id)
        yield record.last if record else None


def _checked(path: Path, last: Voucher | None, zero: bool) -> Voucher | None:
    """Raise UserError where the book says otherwise than --zero."""
    if last is not None and zero:
        raise UserError(
            f"{path} holds a voucher of this session over {amount(last.amount)}: leave --zero out to be paid."
        )
    if last is None and not zero:
        raise UserError(
            f"{path} holds no voucher of this session: run this where the node ran (--home), "
            "or settle at zero with --zero."
        )
    return last
