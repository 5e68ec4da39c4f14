"""What a wallet left behind: runs that were cut off, sessions whose node did not settle, and what a reorg undid."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from counterfoil.agent.desk import Desk
from counterfoil.agent.journal import BusyRunError, RunRow, SessionRow
from counterfoil.agent.journal import SessionState as Stage
from counterfoil.agent.market import ReplacedError
from counterfoil.agent.runner import Runner
from counterfoil.agent.sessions import Driver
from counterfoil.agent.workflows import WorkflowRunner, job_of, workflow_of
from counterfoil.chain.contracts import SessionState, SessionStatus
from counterfoil.chain.errors import ChainError, RevertedError
from indexer.errors import UserError

MOST_UNDONE: Final = 1000
"""How many of the latest sessions are looked at after a reorg."""


def go_on(desk: Desk, say: Callable[[str], None]) -> list[RunRow]:
    """Go on with every run that was cut off, but for those that another process makes; give their ends.

    Raises ChainError where the chain cannot be asked: the runs stay as they are. What stands in the way of one run
    alone is raised once the others were gone on with.
    """
    runner = WorkflowRunner(desk, Runner(desk), say)
    ended, errors = [], []
    for row in desk.journal.unfinished(desk.address):
        try:
            ended.append(runner.go(row))
        except BusyRunError:
            continue
        except UserError as error:
            if isinstance(error, ChainError) and not isinstance(error, RevertedError):
                raise
            errors.append(error)
    if errors:
        raise errors[0]
    return ended


def conclude_closed(desk: Desk) -> list[str]:
    """End every closed session whose challenge period has passed, and give the ids of those that ended.

    What a reorg undid of sessions that were done is done again first, and what a kill left of their end.
    """
    for row in _undone(desk):
        desk.spending.reopened(row.reservation_id)
        _end(desk, _put(desk, row, state=Stage.CALLED, paid=0))
    for row in desk.journal.left(desk.address):
        _end(desk, row)
    return [row.session_id for row in desk.journal.closing(desk.address) if _concluded(desk, row)]


def _undone(desk: Desk) -> list[SessionRow]:
    """The sessions that ended in blocks which the chain does not have any more: mostly it has the latest one.

    What an RPC does not know yet that fell behind is no such block.
    """
    head = desk.chain.head()
    undone = []
    for row in desk.journal.done(desk.address, MOST_UNDONE):
        if row.seen_in > head.number:
            continue
        if desk.chain.block(row.seen_in).hash == row.seen_hash:
            break
        undone.append(row)
    return undone


def _put(desk: Desk, row: SessionRow, **changes: Any) -> SessionRow:  # noqa: ANN401
    changed = replace(row, **changes)
    desk.journal.put(changed)
    return changed


def _end(desk: Desk, row: SessionRow) -> bool:
    """Take a session to its end, without a call; say whether it is there."""
    run, step = desk.journal.run(row.run_id), desk.journal.step(row.run_id, row.step_id)
    if run is None or step is None:
        return False
    workflow = workflow_of(run)
    named = next(one for one in workflow.steps if one.id == row.step_id)
    driver = Driver(desk, job_of(run.run_id, workflow, named, step), lambda _: None, calling=False)
    try:
        return driver.drive(row).state is Stage.DONE
    except ReplacedError:  # it will never be: what was deposited is the wallet's again
        return False


def _concluded(desk: Desk, row: SessionRow) -> bool:
    session = desk.manager.session(row.session_id)
    if session.status not in (SessionStatus.SETTLED, SessionStatus.NONE):
        if not _may_be_ended(desk, session):
            return False
        ending = desk.manager.finish_close if session.status == SessionStatus.CLOSING else desk.manager.expire
        with suppress(RevertedError):  # somebody else ended it at the last moment
            desk.wallet.carry(ending(row.session_id))
        session = desk.manager.session(row.session_id)
    if session.status in (SessionStatus.OPEN, SessionStatus.CLOSING):
        return False
    return _end(desk, _put(desk, row, state=Stage.CALLED))


def _may_be_ended(desk: Desk, session: SessionState) -> bool:
    now = desk.chain.head().timestamp
    if session.status == SessionStatus.CLOSING:
        return now >= session.closes_at
    challenge = int(desk.chain.deployment.contracts["SessionManager"].arguments["challenge_period"])
    return session.status == SessionStatus.OPEN and now >= session.expires_at + challenge
