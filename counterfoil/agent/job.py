"""What an agent wants done, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from counterfoil.agent.checks import Checks
from counterfoil.agent.forms import CallRequest, Form
from counterfoil.agent.journal import CallRow, SessionRow
from counterfoil.receipts import Skipped


@dataclass(frozen=True, slots=True)
class Job:
    """A step that is ready to be done: one call for each of `requests`. Amounts are base units.

    `price_cap` is soft, `budget` the most that a session's deposit may be; `found_by` says how the category was found.
    """

    run_id: str
    step_id: str
    category: str
    requests: tuple[CallRequest, ...]
    form: Form = "json"
    need: str = ""
    task: str = ""
    tool: str = ""
    price_cap: int | None = None
    budget: int | None = None
    pinned: int | None = None
    checks: Checks = field(default_factory=Checks)
    try_both: bool = False
    duration: int = 3600
    per_run: int | None = None
    found_by: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a job without calls."""
        if not self.requests:
            raise ValueError("a job makes at least one call")


@dataclass(frozen=True, slots=True)
class Done:
    """A job's outcome: an output for each request where it worked, and every session and service that was tried."""

    worked: bool
    outputs: tuple[Any, ...]
    sessions: tuple[SessionRow, ...]
    skipped: tuple[Skipped, ...]
    reason: str


def merit(calls: Sequence[CallRow]) -> tuple[int, int]:
    """Sorts sessions by the calls that worked: those a judge liked best first, then the faster ones."""
    scores = [call.judge_score for call in calls if call.judge_score is not None]
    return -(sum(scores) // len(scores)) if scores else 0, sum(call.latency_ms for call in calls)
