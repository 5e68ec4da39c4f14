"""When a node takes a voucher, and when it settles one. Pure: the rules of design section 3 and of the field's reports,
as sentences. Times are seconds, amounts base units.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from counterfoil.chain.contracts import SessionState, SessionStatus


class Refusal(StrEnum):
    """Why a call was refused; the values are stable and stand in the HTTP answer's `type`."""

    UNKNOWN_SESSION = "unknown_session"
    NOT_OURS = "not_ours"
    NOT_OPEN = "not_open"
    EXPIRED = "expired"
    UNCONFIRMED = "unconfirmed"
    NOT_SERVED = "not_served"
    BAD_SIGNATURE = "bad_signature"
    WRONG_CALLS = "wrong_calls"
    UNDERPAID = "underpaid"
    ABOVE_DEPOSIT = "above_deposit"
    BUSY = "busy"
    OTHER_REQUEST = "other_request"
    OVERLOADED = "overloaded"


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
    check_ours(session, node_id, operator)
    if session.status != SessionStatus.OPEN:
        raise RefusedError(Refusal.NOT_OPEN, "the session is closing or settled; open another")
    if now >= session.expires_at:
        raise RefusedError(Refusal.EXPIRED, f"the session expired at {session.expires_at}; open another")


def check_ours(session: SessionState, node_id: int, operator: str) -> None:
    """Raise RefusedError unless the session exists, with this node and this operator."""
    if session.status == SessionStatus.NONE:
        raise RefusedError(Refusal.UNKNOWN_SESSION, "the chain knows no such session; open one and call again")
    if session.node_id != node_id:
        raise RefusedError(Refusal.NOT_OURS, f"the session is with node {session.node_id}, this is node {node_id}")
    if session.operator != operator:
        raise RefusedError(Refusal.NOT_OURS, f"the session is with {session.operator}, who no longer runs it")


def check_confirmed(confirmed: SessionState, operator: str, amount: int, depth: int) -> None:
    """Raise RefusedError unless the session, as it was `depth` blocks below the head, holds the amount."""
    if confirmed.status == SessionStatus.NONE or confirmed.operator != operator:
        raise RefusedError(Refusal.UNCONFIRMED, f"the session is not {depth} blocks deep yet; call again in a moment")
    if amount > confirmed.deposit:
        raise RefusedError(
            Refusal.UNCONFIRMED,
            f"of the deposit {confirmed.deposit} is {depth} blocks deep, the voucher is over {amount}; call again in a "
            "moment",
        )


def check_calls(last: Voucher | None, voucher: Voucher) -> None:
    """Raise RefusedError unless the voucher is for exactly one call more than the last one."""
    calls = last.calls if last else 0
    if voucher.calls != calls + 1:
        raise RefusedError(Refusal.WRONG_CALLS, f"{calls} calls are paid, so the next voucher is for {calls + 1}")


def check_amount(price: int, voucher: Voucher) -> None:
    """Raise RefusedError unless the voucher pays for all its calls."""
    due = price * voucher.calls
    if voucher.amount < due:
        raise RefusedError(Refusal.UNDERPAID, f"{voucher.calls} calls cost {due}, the voucher is over {voucher.amount}")


def check_next(session: SessionState, last: Voucher | None, voucher: Voucher) -> None:
    """Raise RefusedError unless the voucher pays for exactly one call more than the last one, within the deposit."""
    check_calls(last, voucher)
    check_amount(session.price, voucher)
    if last and voucher.amount < last.amount:
        raise RefusedError(Refusal.UNDERPAID, f"the last voucher was over {last.amount}, this one is over less")
    if voucher.amount > session.deposit:
        raise RefusedError(
            Refusal.ABOVE_DEPOSIT, f"the voucher is over {voucher.amount}, the deposit is {session.deposit}; top it up"
        )


def settle_at(expires_at: int, seen_at: int, margin: int) -> int:
    """From when on a session with served calls is settled, whoever asks: `margin` before it expires.

    The margin is never more than a quarter of what was left of the session when the node first saw it.
    """
    return expires_at - min(margin, max(0, expires_at - seen_at) // 4)


def is_due(session: SessionState, now: int, seen_at: int, margin: int, served: bool) -> bool:
    """Whether a session should be settled without being asked: it is closing, it expired, or, with calls to be paid
    for (`served`), it nears its end.
    """
    if session.status == SessionStatus.CLOSING:
        return True
    ends = settle_at(session.expires_at, seen_at, margin) if served else session.expires_at
    return session.status == SessionStatus.OPEN and now >= ends


def above_limit(unsettled: Mapping[str, int], limit: int) -> list[str]:
    """Which sessions are settled so that no more than `limit` stays unsettled: the largest first. 0 is no limit."""
    left = sum(unsettled.values())
    chosen = []
    for session_id, amount in sorted(unsettled.items(), key=lambda item: (-item[1], item[0])):
        if not limit or left <= limit:
            break
        chosen.append(session_id)
        left -= amount
    return chosen
