"""Settling: what is due, what a reorg undid, and what the chain refuses for good."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from counterfoil.chain.connection import Block
from counterfoil.chain.contracts import SessionState, SessionStatus
from counterfoil.chain.errors import RevertedError
from counterfoil.chain.sender import Sender
from counterfoil.node.book import Known, Record, Stage, VoucherBook
from counterfoil.node.metrics import Metrics
from counterfoil.node.reading import Reader
from counterfoil.node.vouchers import Refusal, RefusedError, Voucher, above_limit, is_due
from indexer.errors import IndexerError
from indexer.settings import Settings

MAX_REFUSALS: Final = 5
"""How often in a row the chain may refuse a settlement before its session counts as stuck."""
MAX_PAUSE: Final = 60.0
GIVE_UP_BLOCKS: Final = 256
"""A session's id commits to a block that its opening may follow by no more: after so many final ones it is gone."""
_ON_ITS_WAY: Final = "sessions: already settled"
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Settled:
    """How a session ended: `paid` in base units, for `calls`."""

    session_id: str
    paid: int
    calls: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a session is not settled yet: how often the chain refused (`refusals`), and when it is tried again."""

    attempts: int
    refusals: int
    again_at: float
    reason: str

    @property
    def is_stuck(self) -> bool:
        """Whether it is tried no more, until something about the session changes or the node starts anew."""
        return self.refusals >= MAX_REFUSALS


class Settler:
    """Settles one node's sessions, one transaction at a time. Threads may share it.

    What time it is, the chain says: its newest block's time, and the seconds that this block has been the newest for,
    so that a chain that stands still hides no deadline. `clock` counts these; this machine's date is never asked.
    """

    def __init__(
        self,
        reader: Reader,
        sender: Sender,
        book: VoucherBook,
        metrics: Metrics,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._sender = sender
        self._book = book
        self._metrics = metrics
        self._margin = settings.node_settle_margin_seconds
        self._limit = settings.node_settle_above
        self._pause = settings.node_watch_seconds
        self._clock = clock
        self._newest = ("", clock())
        self._sending = threading.Lock()
        self._states: dict[str, SessionState] = {}
        self._troubles: dict[str, Trouble] = {}

    def stuck(self) -> dict[str, str]:
        """Why sessions are stuck, by their ids."""
        return {session_id: trouble.reason for session_id, trouble in list(self._troubles.items()) if trouble.is_stuck}

    def is_above_limit(self) -> bool:
        """Whether unsettled vouchers passed the limit."""
        return bool(self._limit and above_limit(_amounts(self._book.watched()), self._limit))

    def settle(self, known: Known) -> Settled:
        """Settle a session at its last served call. Raises RefusedError while a call is served, and ChainError.

        From here on none of its calls is served, also where this fails: it is tried again until it is settled or stuck.
        """
        with self._sending:
            record = self._book.claim(known)
            head = self._reader.head()
            state = self._reader.session(known.session_id, head)
            if state.status == SessionStatus.NONE:
                raise RefusedError(Refusal.UNKNOWN_SESSION, "the chain has no such session now; ask again in a moment")
            if state.status != SessionStatus.SETTLED:
                head = self._send(record.payable)
                state = self._reader.session(known.session_id, head)
            if state.status == SessionStatus.SETTLED and not record.is_settled:
                self._note_settled(record.payable, state, head)
        return Settled(known.session_id, state.paid, state.calls)

    def settle_due(self, head: Block) -> None:
        """Settle what is due. Raises ChainError and BookError."""
        records = self._book.watched()
        self._complete(records, head)
        due = self._due(records, self._now(head))
        for record in due:
            self._try(record)
        self._metrics.booked(self._book.watched() if due else records)
        self._metrics.stuck.set(len(self.stuck()))

    def _now(self, head: Block) -> int:
        if self._newest[0] != head.hash:
            self._newest = (head.hash, self._clock())
        return head.timestamp + int(self._clock() - self._newest[1])

    def _due(self, watched: list[Record], now: int) -> list[Record]:
        records = [record for record in watched if self._is_live(record)]
        above = set(above_limit(_amounts(records), self._limit))
        due = [record for record in records if record.known.session_id in above or self._is_due(record, now)]
        return sorted((record for record in due if self._may_try(record)), key=lambda record: -record.payable.amount)

    def _is_live(self, record: Record) -> bool:
        state = self._states.get(record.known.session_id)
        is_open = state is not None and state.status in (SessionStatus.OPEN, SessionStatus.CLOSING)
        return is_open and not record.is_settled

    def _is_due(self, record: Record, now: int) -> bool:
        state, served = self._states[record.known.session_id], record.last is not None
        return record.stage is not Stage.OPEN or is_due(state, now, record.known.seen_at, self._margin, served)

    def _may_try(self, record: Record) -> bool:
        trouble = self._troubles.get(record.known.session_id)
        return trouble is None or not (trouble.is_stuck or time.monotonic() < trouble.again_at)

    def _try(self, record: Record) -> None:
        session_id = record.known.session_id
        try:
            self.settle(record.known)
        except RefusedError:  # a call is being served, or the chain has no such session now
            return
        except RevertedError as error:
            # The pending block holds an earlier transaction of ours: that is no refusal.
            self._put_off(session_id, error, refused=error.reason != _ON_ITS_WAY)
        except IndexerError as error:
            self._put_off(session_id, error, refused=False)
            raise
        else:
            self._troubles.pop(session_id, None)

    def _put_off(self, session_id: str, error: IndexerError, *, refused: bool) -> None:
        before = self._troubles.get(session_id, Trouble(0, 0, 0, ""))
        attempts = before.attempts + 1
        again_at = time.monotonic() + min(MAX_PAUSE, self._pause * 2 ** min(attempts, 10))
        trouble = Trouble(attempts, before.refusals + refused, again_at, str(error)[:200])
        self._troubles[session_id] = trouble
        self._metrics.settlement("stuck" if trouble.is_stuck else "failed")
        _log.warning(
            "settlement_stuck" if trouble.is_stuck else "settlement_failed", session_id=session_id, attempts=attempts,
            message=f"Session {session_id} is not settled: {trouble.reason}"
            + (" It is tried again when the session changes or the node starts anew." if trouble.is_stuck else ""),
        )  # fmt: skip

    def _send(self, last: Voucher) -> Block:
        manager = self._reader.manager
        mined = self._sender.send(manager.settle(last.session_id, last.amount, last.calls, last.signature))
        return Block(mined.block, mined.block_hash, 0)

    def _note_settled(self, last: Voucher, state: SessionState, head: Block) -> None:
        self._book.settled(last.session_id, head.number, head.hash)
        lost = last.amount - state.paid
        self._metrics.settlement("lost" if lost > 0 else "settled")
        words = f"Session {last.session_id} is settled: {state.paid} for {state.calls} calls"
        if lost > 0:
            message = f"{words}; {lost} less than its last voucher, because somebody else ended it."
            _log.error("settled_for_less", session_id=last.session_id, paid=state.paid, lost=lost, message=message)
        else:
            _log.info(
                "settled", session_id=last.session_id, paid=state.paid, calls=state.calls, message=f"{words}."
            )  # fmt: skip

    # --- following the chain

    def follow(self, changed: set[str] | None, head: Block, final: Block) -> None:
        """Take note of what became of sessions up to this block; `changed` are those to read again, None all."""
        records = self._book.watched()
        kept = {} if changed is None else {one: state for one, state in self._states.items() if one not in changed}
        for record in records:
            session_id = record.known.session_id
            state = kept.get(session_id) or self._reader.session(session_id, head)
            if state != self._states.get(session_id):
                self._troubles.pop(session_id, None)
            self._states[session_id] = state
            self._follow_one(record, state, head, final)
        watched = {record.known.session_id for record in records}
        self._states = {session_id: state for session_id, state in self._states.items() if session_id in watched}
        self._troubles = {session_id: why for session_id, why in self._troubles.items() if session_id in watched}
        self._book.prune()

    def _complete(self, records: list[Record], head: Block) -> None:
        """Read the sessions that came into the book since the block was followed."""
        for record in records:
            session_id = record.known.session_id
            if session_id not in self._states:
                self._states[session_id] = self._reader.session(session_id, head)

    def _follow_one(self, record: Record, state: SessionState, head: Block, final: Block) -> None:
        session_id = record.known.session_id
        if state.status == SessionStatus.NONE:
            if final.number > record.known.seen_block + GIVE_UP_BLOCKS:
                self._give_up(record)
        elif state.status != SessionStatus.SETTLED:
            if record.settled_in and record.is_settled and record.settled_in[0] <= head.number:
                self._book.undone(session_id)
                self._metrics.settlement("undone")
                _log.warning(
                    "settlement_undone", session_id=session_id,
                    message=f"A reorg undid the settlement of session {session_id}; it is sent again.",
                )  # fmt: skip
        elif record.settled_in is None or not record.is_settled:
            self._note_settled(record.payable, state, head)
        elif record.settled_in[0] <= final.number:
            if self._reader.is_on_chain(*record.settled_in):
                self._book.finish(session_id)
            else:
                self._book.settled(session_id, head.number, head.hash)

    def _give_up(self, record: Record) -> None:
        session_id = record.known.session_id
        self._book.forget(session_id)
        self._metrics.settlement("given_up")
        _log.error(
            "session_given_up", session_id=session_id, amount=record.payable.amount,
            message=f"Session {session_id} is not on the chain and cannot come back; its voucher over "
            f"{record.payable.amount} is dropped.",
        )  # fmt: skip


def _amounts(records: list[Record]) -> Mapping[str, int]:
    return {record.known.session_id: record.payable.amount for record in records if not record.is_settled}
