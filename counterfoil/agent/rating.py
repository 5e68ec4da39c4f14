"""The score an agent gives after a session, from the session's own results. Pure; published in docs/agent-rules.md.

A call whose fault was our own does not count. Of those that do,
score = max(0, floor(base x worked / counted) - slowness), where base is the judge's mean over the worked calls that it
scored, 100 where it scored none, and slowness is 0 at or below the category's median latency and grows to 40 at four
times it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from counterfoil.routing.experience import rounded
from counterfoil.routing.reasons import plural

MAX_SCORE: Final = 100
MAX_SLOWNESS: Final = 40
MAX_REASON: Final = 280
"""The most bytes of a reason."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """One call: whether it worked, its latency in milliseconds, and the judge's score of 0 to 100, None without one.

    `own_fault` says that it failed on the agent's own side, of which the node knows nothing.
    """

    worked: bool
    latency_ms: int
    judge_score: int | None = None
    own_fault: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a score out of range."""
        if self.judge_score is not None and not 0 <= self.judge_score <= MAX_SCORE:
            raise ValueError(f"a judge's score is from 0 to {MAX_SCORE}, not {self.judge_score}")


@dataclass(frozen=True, slots=True)
class Rating:
    """A score of 0 to 100 and its reason: a sentence for each part, of MAX_REASON bytes together at most."""

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


def rate(calls: Sequence[CallResult], category_median_ms: int | None) -> Rating | None:
    """Rate a session by its calls; an unknown median costs nothing. None where no call says anything of the node."""
    counted = [call for call in calls if not call.own_fault]
    if not counted:
        return None
    worked = [call for call in counted if call.worked]
    scores = [call.judge_score for call in worked if call.judge_score is not None]
    base = Fraction(sum(scores), len(scores)) if scores else Fraction(MAX_SCORE)
    latency = median([call.latency_ms for call in worked])
    slowness = _slowness(latency, category_median_ms)
    score = max(0, base * len(worked) // len(counted) - slowness)
    parts = (
        f"{len(worked)} of {plural(len(counted), 'call')} worked.",
        f"The judge gave {rounded(base)}/100 on average to {len(scores)} of them." if scores else "",
        _pace(latency, category_median_ms, slowness),
        _left_out(len(calls) - len(counted)),
    )
    return Rating(score, " ".join(filter(None, parts)))


def _slowness(latency_ms: int | None, category_median_ms: int | None) -> int:
    if latency_ms is None or not category_median_ms or latency_ms <= category_median_ms:
        return 0
    excess = MAX_SLOWNESS * (latency_ms - category_median_ms) // (3 * category_median_ms)
    return min(MAX_SLOWNESS, excess)


def _pace(latency_ms: int | None, category_median_ms: int | None, slowness: int) -> str:
    if latency_ms is None:
        return ""
    if not category_median_ms:
        return f"The median latency is {latency_ms} ms, and the category's is not known."
    compared = f"the median latency is {latency_ms} ms, the category's {category_median_ms} ms."
    return f"{plural(slowness, 'point')} off for slowness: {compared}"


def _left_out(count: int) -> str:
    return f"{plural(count, 'call')} failed on our own side and {'does' if count == 1 else 'do'} not count." * bool(
        count
    )
