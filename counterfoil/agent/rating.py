"""The score an agent gives after a session, from the session's own results. Pure.

score = 100 x worked share - slowness, where slowness is 0 at or below the category's median latency and grows to 40
at four times it. A session in which nothing worked scores 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

MAX_SLOWNESS = 40


@dataclass(frozen=True, slots=True)
class CallResult:
    """One call: whether it worked, and its latency in milliseconds."""

    worked: bool
    latency_ms: int


@dataclass(frozen=True, slots=True)
class Rating:
    """A score of 0 to 100 with the sentence that explains it."""

    score: int
    reason: str


def median(latencies: Sequence[int]) -> int | None:
    """The middle latency, the mean of the two middle ones (rounded down) of an even count; None of none."""
    if not latencies:
        return None
    ordered = sorted(latencies)
    upper = len(ordered) // 2
    lower = upper if len(ordered) % 2 else upper - 1
    return (ordered[lower] + ordered[upper]) // 2


def rate(calls: Sequence[CallResult], category_median_ms: int | None) -> Rating:
    """Rate a session by its calls; an unknown median costs nothing. Raises ValueError without calls."""
    if not calls:
        raise ValueError("a session without calls cannot be rated")
    worked = [call.latency_ms for call in calls if call.worked]
    share = 100 * len(worked) // len(calls)
    slowness = _slowness(median(worked), category_median_ms)
    score = max(0, share - slowness)
    return Rating(score, f"{len(worked)} of {len(calls)} calls worked, {slowness} points off for slowness")


def _slowness(latency_ms: int | None, category_median_ms: int | None) -> int:
    if latency_ms is None or not category_median_ms or latency_ms <= category_median_ms:
        return 0
    excess = MAX_SLOWNESS * (latency_ms - category_median_ms) // (3 * category_median_ms)
    return min(MAX_SLOWNESS, excess)
