"""What a wallet left behind: runs that were cut off, and sessions whose node did not settle."""

from collections.abc import Callable
from contextlib import suppress

from counterfoil.agent.desk import Desk
from counterfoil.agent.journal import BusyRunError, RunRow, SessionRow
from counterfoil.agent.runner import Runner
from counterfoil.agent.sessions import Driver
from counterfoil.agent.workflow import read
from counterfoil.agent.workflows import WorkflowRunner, job_of
from counterfoil.chain.contracts import SessionState, SessionStatus


def go_on(desk: Desk, say: Callable[[str], None]) -> list[RunRow]:
    """Go on with every run that was cut off, but for those that another process makes; give their ends.

    Raises ChainError where the chain cannot be asked: the runs stay as they are.
    """
    runner = WorkflowRunner(desk, Runner(desk), say)
    ended = []
    for row in desk.journal.unfinished(desk.address):
        with suppress(BusyRunError):
            ended.append(runner.go(row))
    return ended


def conclude_closed(desk: Desk) -> list[str]:
    """End every closed session whose challenge period has passed, and give the ids of those that ended."""
    return [row.session_id for row in desk.journal.closing(desk.address) if _concluded(desk, row)]


def _concluded(desk: Desk, row: SessionRow) -> bool:
    session = desk.manager.session(row.session_id)
    if session.status != SessionStatus.SETTLED:
        if not _may_be_ended(desk, session):
            return False
        ending = desk.manager.finish_close if session.status == SessionStatus.CLOSING else desk.manager.expire
        desk.wallet.carry(ending(row.session_id))
        session = desk.manager.session(row.session_id)
    run, step = desk.journal.run(row.run_id), desk.journal.step(row.run_id, row.step_id)
    if run is None or step is None:
        return False
    workflow = read(run.workflow.encode(), f"of run {run.run_id}")
    named = next(one for one in workflow.steps if one.id == row.step_id)
    driver = Driver(desk, job_of(run.run_id, workflow, named, step), lambda _: None)
    driver.conclude(row, session)
    return True


def _may_be_ended(desk: Desk, session: SessionState) -> bool:
    now = desk.chain.head().timestamp
    if session.status == SessionStatus.CLOSING:
        return now >= session.closes_at
    challenge = int(desk.chain.deployment.contracts["SessionManager"].arguments["challenge_period"])
    return session.status == SessionStatus.OPEN and now >= session.expires_at + challenge
