"""What an audit looks at and what it says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from counterfoil.routing.lottery import NO_CAP, Ranking

By = Literal["state", "index", "both"]
"""What an audit replays by."""


class Outcome(StrEnum):
    """Of one check or of a whole audit. NOTE is told and changes nothing."""

    OK = "ok"
    NOTE = "note"
    MISMATCH = "mismatch"
    UNKNOWN = "cannot be checked"


class Part(StrEnum):
    """What a check was made against."""

    STATE = "state"
    INDEX = "index"
    RECEIPT = "receipt"


WHERE = {Part.STATE: "on chain", Part.INDEX: "in the index", Part.RECEIPT: "in the receipt"}


_WORD = re.compile(r"0x[0-9a-f]{64}")
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_FORMS = {
    **dict.fromkeys(("session_id", "snapshot_hash", "draw_seed", "decision", "category_id"), _WORD),
    **dict.fromkeys(("client", "operator", "signer"), _ADDRESS),
}
_LIMITS = {
    **dict.fromkeys(("service_id", "node_id", "price", "max_price", "nonce", "attempt", "price_cap"), NO_CAP + 1),
    **dict.fromkeys(("snapshot_block", "opened_block"), 2**63),
    "policy": 256,
}


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a session committed to when it was opened. Hashes and addresses are 0x and lower-case digits.

    `price_cap` is 2**256 - 1 where there is none, as on chain; `price` and `max_price` are base units a call.
    Raises ValueError for what no event could have said.
    """

    session_id: str
    client: str
    service_id: int
    node_id: int
    operator: str
    signer: str
    price: int
    max_price: int
    policy: int
    nonce: int
    attempt: int
    snapshot_block: int
    snapshot_hash: str
    draw_seed: str
    price_cap: int
    decision: str
    opened_block: int
    category_id: str

    def __post_init__(self) -> None:
        for name, form in _FORMS.items():
            if not form.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} of session {self.session_id[:80]} is {getattr(self, name)[:80]!r}")
        for name, limit in _LIMITS.items():
            if not 0 <= getattr(self, name) < limit:
                raise ValueError(f"{name} of session {self.session_id} is {getattr(self, name)}")

    @property
    def cap(self) -> int | None:
        """The price cap, None where there is none."""
        return None if self.price_cap == NO_CAP else self.price_cap

    @property
    def snapshot_age(self) -> int:
        """Blocks from the snapshot to the opening."""
        return self.opened_block - self.snapshot_block


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked, and in a sentence what came out."""

    part: Part
    name: str
    outcome: Outcome
    sentence: str


@dataclass(frozen=True, slots=True)
class SessionAudit:
    """Every check of one session. `ranking` is the replayed draw (by state where there is one), None without."""

    session_id: str
    facts: SessionFacts | None
    category: str | None
    ranking: Ranking | None
    checks: tuple[Check, ...]

    @property
    def outcome(self) -> Outcome:
        """Of the whole audit: a mismatch outweighs what cannot be checked."""
        return overall(self.checks)

    def outcome_of(self, part: Part) -> Outcome | None:
        """Of one part; None when it was not asked for."""
        checks = [check for check in self.checks if check.part is part]
        return overall(checks) if checks else None

    @property
    def first_difference(self) -> str | None:
        """The sentence of the first mismatch."""
        found = (check.sentence for check in self.checks if check.outcome is Outcome.MISMATCH)
        return next(found, None)


def overall(checks: Sequence[Check]) -> Outcome:
    """The outcome of several checks together."""
    outcomes = {check.outcome for check in checks}
    if Outcome.MISMATCH in outcomes:
        return Outcome.MISMATCH
    if Outcome.UNKNOWN in outcomes or not outcomes:
        return Outcome.UNKNOWN
    return Outcome.OK
