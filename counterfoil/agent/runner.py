"""One job, from the choice to the attestation.

The order matters: the receipt is on disk before its digest is on chain, the signed opening is in the journal before it
is sent, and the session is on chain before a call.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from counterfoil.agent.desk import Desk
from counterfoil.agent.draws import Draw, after, draw_of, new_draw, price_of, receipt_of
from counterfoil.agent.funding import sign_opening
from counterfoil.agent.job import Done, Job, merit
from counterfoil.agent.journal import CallRow, Outcome, SessionRow, SessionState
from counterfoil.agent.market import Market, Place, ReplacedError
from counterfoil.agent.node_client import NodeError
from counterfoil.agent.sessions import MOVED, Driver, see_that_we_are_online, void
from counterfoil.agent.spending import OverPolicyError, Reservation, SpendPolicy
from counterfoil.chain.contracts import Choice, Opening
from counterfoil.chain.errors import ChainError, RevertedError
from counterfoil.chain.sender import Signed
from counterfoil.receipts import Receipt, Skipped, digest

MAX_DRAWS: Final = 5
MAX_SESSIONS: Final = 8


def always() -> bool:
    """A client that may open any number of sessions."""
    return True


class Runner:
    """Does jobs for one wallet. `may_open` is asked before every session; `opened` hears of every one."""

    def __init__(
        self,
        desk: Desk,
        *,
        may_open: Callable[[], bool] = always,
        opened: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._desk = desk
        self._may_open = may_open
        self._opened = opened

    def run(self, job: Job) -> Done:
        """Do a job, or go on with it. A session that a reorg took away is drawn anew, at most five times.

        Raises ChainError then, OverPolicyError where a hard cap leaves nothing to open, and OwnFaultError.
        """
        driver = Driver(self._desk, job, self._opened)
        fresh = False
        for _ in range(MAX_DRAWS):
            try:
                return self._go_on(job, driver, fresh=fresh)
            except ReplacedError:
                fresh = True
        raise ChainError(f"The chain replaced {MAX_DRAWS} sessions in a row: wait until it is calm, then run again.")

    def _go_on(self, job: Job, driver: Driver, *, fresh: bool) -> Done:
        skipped: tuple[Skipped, ...] = ()
        while True:
            rows = [driver.drive(row) for row in self._rows(job)]
            if self._is_done(job, rows) or len(rows) >= MAX_SESSIONS:
                return self._outcome(job, rows, skipped)
            # What was overtaken once, be it by another process of this wallet, is drawn and sent in one turn.
            with self._desk.wallet.turn() if fresh else nullcontext():
                draw = self._draw(job) if fresh or not rows else self._next_of(rows[-1], job)
                opened, skipped = self._open_next(job, driver, draw)
            if not opened:
                return self._outcome(job, rows, skipped)
            fresh = False

    def _rows(self, job: Job) -> list[SessionRow]:
        rows = self._desk.journal.sessions(job.run_id, job.step_id)
        return [row for row in rows if row.state is not SessionState.VOID]

    def _is_done(self, job: Job, rows: Sequence[SessionRow]) -> bool:
        if job.try_both:
            return sum(self._worked(job, row) for row in rows) >= 2
        return len(self._answers(rows)) == len(job.requests)

    # --- the choice

    def _open_next(self, job: Job, driver: Driver, draw: Draw | None) -> tuple[bool, tuple[Skipped, ...]]:
        """Open with the first service of the order that answers and may be paid; say which were skipped, and why.

        Raises OverPolicyError where only a hard cap stood in the way.
        """
        skipped: tuple[Skipped, ...] = draw.skipped if draw else ()
        refused: OverPolicyError | None = None
        while draw is not None:
            receipt = receipt_of(self._desk, draw)
            try:
                return self._open(job, driver, receipt, self._reached(receipt)), draw.skipped
            except OverPolicyError as error:
                refused, why = error, str(error)
            except NodeError as error:
                see_that_we_are_online(self._desk.chain, error)
                refused, why = None, f"node not reached: {error}"
            skipped, draw = after(draw, receipt, why)
        if refused is not None:
            raise refused
        return False, skipped

    def _draw(self, job: Job) -> Draw:
        return new_draw(self._desk, self._market(), job.category, job.price_cap, job.pinned, job.found_by)

    def _next_of(self, last: SessionRow, job: Job) -> Draw | None:
        """The same draw after a session of it that failed or is to be compared, else a new one; None at its end."""
        if not last.failure and not job.try_both:
            return self._draw(job)
        receipt = self._desk.receipts.load(last.decision)
        return after(draw_of(receipt), receipt, _why(last))[1]

    def _market(self) -> Market:
        """Whom to ask now: after a reorg the index, once it has caught up with the chain."""
        return self._desk.markets.now()[0]

    def _reached(self, receipt: Receipt) -> Place:
        place = self._market().place(receipt.choice, receipt.snapshot_block)
        if place is None:
            raise NodeError("its node is not registered")
        self._desk.node(place.endpoint).probe()
        return place

    # --- the opening

    def _open(self, job: Job, driver: Driver, receipt: Receipt, place: Place) -> bool:
        """Reserve, sign and send, each written down before it is done, in one turn of the wallet.

        Gives False where no more sessions may be opened. Raises OverPolicyError, ReplacedError, UnfundedError and
        RevertedError; then there is no session.
        """
        with self._desk.wallet.turn():
            signed = self._sign(job, receipt, place)
            if signed is not None:
                driver.open(signed)
            return signed is not None

    def _sign(self, job: Job, receipt: Receipt, place: Place) -> SessionRow | None:
        row = self._planned(job, receipt, place)
        self._desk.journal.put(row)
        try:
            self._reserve(job, row)
            self._desk.receipts.save(receipt)
            signed = self._signed(_opening(job, receipt, row))
            # Asked last, so that a draw that the chain refuses uses nothing up.
            if not self._may_open():
                void(self._desk, row)
                return None
            intended = replace(
                row,
                state=SessionState.INTENDED,
                sent_by=signed.account,
                account_nonce=signed.nonce,
                tx_hash=signed.transaction,
                raw=signed.raw,
            )
            self._desk.journal.put(intended)
        except BaseException as error:
            void(self._desk, row)
            if isinstance(error, RevertedError) and error.reason in MOVED:
                raise ReplacedError from error
            raise
        return intended

    def _signed(self, opening: Opening) -> Signed:
        signed = sign_opening(self._desk, opening)
        # Runs that decided at the same moment sign the same bytes: one session would be taken for two.
        if self._desk.journal.is_signed(signed.transaction):
            raise ReplacedError
        return signed

    def _planned(self, job: Job, receipt: Receipt, place: Place) -> SessionRow:
        rows = self._desk.journal.sessions(job.run_id, job.step_id)
        price = price_of(receipt)
        # What a session answered that never came to be is asked and paid for anew.
        calls = len(job.requests) if job.try_both else len(job.requests) - len(self._answers(self._rows(job)))
        return SessionRow(
            reservation_id=f"{job.run_id}/{job.step_id}/{len(rows)}",
            run_id=job.run_id,
            step_id=job.step_id,
            position=len(rows),
            client=self._desk.address,
            category=job.category,
            service_id=receipt.choice,
            operator=place.operator,
            endpoint=place.endpoint,
            price=price,
            deposit=price * calls,
            attempt=receipt.attempt,
            decision=digest(receipt),
            nonce=receipt.request.nonce,
        )

    def _reserve(self, job: Job, row: SessionRow) -> None:
        if job.budget is not None and row.deposit > job.budget:
            raise OverPolicyError(f"a deposit of {row.deposit} is above the step's budget of {job.budget}")
        day = datetime.now(UTC).date()
        calls = row.deposit // row.price if row.price else len(job.requests)
        reservation = Reservation(row.reservation_id, job.run_id, row.operator, row.price, calls, row.deposit, day)
        self._desk.spending.reserve(capped(self._desk.policy, job.per_run), reservation)

    # --- the outcome

    def _answers(self, rows: Sequence[SessionRow]) -> dict[int, CallRow]:
        calls = [call for row in rows for call in self._desk.journal.calls(row.reservation_id)]
        return {call.item: call for call in calls if call.outcome is Outcome.WORKED}

    def _worked(self, job: Job, row: SessionRow) -> bool:
        return len(self._answers([row])) == len(job.requests)

    def _outcome(self, job: Job, rows: Sequence[SessionRow], skipped: tuple[Skipped, ...]) -> Done:
        kept = self._best(job, rows) if job.try_both else list(rows)
        answers = self._answers(kept)
        worked = len(answers) == len(job.requests)
        outputs: tuple[Any, ...] = tuple(answers[item].output for item in sorted(answers)) if worked else ()
        return Done(worked, outputs, tuple(rows), skipped, _reason(kept if worked else [], rows, skipped))

    def _best(self, job: Job, rows: Sequence[SessionRow]) -> list[SessionRow]:
        """The session whose answers a judge liked best, then the faster one, of those that worked."""
        worked = [row for row in rows if self._worked(job, row)]
        return sorted(worked, key=self._merit)[:1]

    def _merit(self, row: SessionRow) -> tuple[int, int, int]:
        return *merit(list(self._answers([row]).values())), row.position


def _reason(kept: Sequence[SessionRow], rows: Sequence[SessionRow], skipped: Sequence[Skipped]) -> str:
    """Who served a job, or why nobody did."""
    if kept:
        served = ", ".join(str(row.service_id) for row in kept if not row.failure)
        return f"served by service {served}"
    failures = [f"service {row.service_id}: {row.failure}" for row in rows if row.failure]
    failures += [f"service {skip.service_id}: {skip.reason}" for skip in skipped]
    return "; ".join(dict.fromkeys(failures)) or "no session was opened"


def capped(policy: SpendPolicy, per_run: int | None) -> SpendPolicy:
    """The policy with a run's own budget in it: the lower cap holds."""
    if per_run is None:
        return policy
    return replace(policy, per_run=per_run if policy.per_run is None else min(per_run, policy.per_run))


def _opening(job: Job, receipt: Receipt, row: SessionRow) -> Opening:
    request = receipt.request
    choice = Choice(
        policy=request.policy,
        nonce=request.nonce,
        attempt=receipt.attempt,
        snapshot_block=receipt.snapshot_block,
        snapshot_hash=receipt.snapshot_hash,
        price_cap=request.price_cap,
        decision=row.decision,
    )
    return Opening(row.service_id, row.deposit, row.price, job.duration, choice)


def _why(last: SessionRow) -> str:
    if last.failure:
        return f"session {last.session_id[:10]} failed: {last.failure}"
    return f"session {last.session_id[:10]} worked; the next of the order is tried too, to compare them"
