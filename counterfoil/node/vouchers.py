"""When a node takes a voucher. Pure: the rules of design section 3 and of the field's reports, as sentences."""

from dataclasses import dataclass
from enum import StrEnum

from counterfoil.chain.contracts import SessionState, SessionStatus


class Refusal(StrEnum):
    """Why a voucher was refused; the values are stable and stand in the HTTP answer's `type`."""

    UNKNOWN_SESSION = "unknown_session"
    NOT_OURS = "not_ours"
    NOT_OPEN = "not_open"
    EXPIRED = "expired"
    BAD_SIGNATURE = "bad_signature"
    WRONG_CALLS = "wrong_calls"
    UNDERPAID = "underpaid"
    ABOVE_DEPOSIT = "above_deposit"
    BUSY = "busy"


class RefusedError(Exception):
    """A call that is not served; the last valid voucher stays."""

    def __init__(self, refusal: Refusal, sentence: str) -> None:
        super().__init__(sentence)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Voucher:
    """What a client signed for a session so far: `amount` in base units for `calls` calls together."""

    session_id: str
    amount: int
    calls: int
    signature: bytes


def check_session(session: SessionState, node_id: int, operator: str, now: int) -> None:
    """Raise RefusedError unless this node serves, and can settle, the session at `now` (a block's time, seconds)."""
    if session.status == SessionStatus.NONE:
        raise RefusedError(Refusal.UNKNOWN_SESSION, "the chain knows no such session; open one and call again")
    if session.node_id != node_id:
        raise RefusedError(Refusal.NOT_OURS, f"the session is with node {session.node_id}, this is node {node_id}")
    if session.operator != operator:
        raise RefusedError(Refusal.NOT_OURS, f"the session is with {session.operator}, who no longer runs it")
    if session.status != SessionStatus.OPEN:
        raise RefusedError(Refusal.NOT_OPEN, "the session is closing or settled; open another")
    if now >= session.expires_at:
        raise RefusedError(Refusal.EXPIRED, f"the session expired at {session.expires_at}; open another")


def check_calls(last: Voucher | None, voucher: Voucher) -> None:
    """Raise RefusedError unless the voucher is for exactly one call more than the last one."""
    calls = last.calls if last else 0
    if voucher.calls != calls + 1:
        raise RefusedError(Refusal.WRONG_CALLS, f"{calls} calls are paid, so the next voucher is for {calls + 1}")


def check_next(session: SessionState, last: Voucher | None, voucher: Voucher) -> None:
    """Raise RefusedError unless the voucher pays for exactly one call more than the last one, within the deposit."""
    check_calls(last, voucher)
    due = session.price * voucher.calls
    if voucher.amount < due:
        raise RefusedError(Refusal.UNDERPAID, f"{voucher.calls} calls cost {due}, the voucher is over {voucher.amount}")
    if voucher.amount > session.deposit:
        raise RefusedError(
            Refusal.ABOVE_DEPOSIT, f"the voucher is over {voucher.amount}, the deposit is {session.deposit}; top it up"
        )


def is_due(session: SessionState, now: int) -> bool:
    """Whether a session should be settled without being asked: it is closing, it expired, or it was ended already."""
    return session.status >= SessionStatus.CLOSING or (
        session.status == SessionStatus.OPEN and now >= session.expires_at
    )
