"""What other agents found: experience by need and by task label, and the listings that are best for a task.

Design section 6. Everything is exact: integers and ratios of integers; a percentage is formed only when it is printed.
A group of records is a summary that a further record is added to, so whoever keeps summaries adds them up anew for
nothing. Closeness of labels is a share of words, so it needs no order and no model.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter, itemgetter

from counterfoil.routing import reasons

__all__ = [
    "NOTES_KEPT",
    "TRUSTED_RATE",
    "TRUSTED_RUNS",
    "Distance",
    "Group",
    "Listing",
    "Match",
    "Note",
    "Record",
    "Summary",
    "best",
    "best_near",
    "by_need",
    "by_task",
    "closeness",
    "distances",
    "falling",
    "headline",
    "rounded",
    "sentence",
    "words",
]  # fmt: skip

NOTES_KEPT = 5
"""How many of the latest notes a summary keeps."""
TRUSTED_RUNS = 3
TRUSTED_RATE = Fraction(9, 10)
"""A listing is trusted for a task after so many runs of exactly that label, of which so much worked."""
_UNJUDGED = (1, 2)
_FULL_SCORE = 100
_KEY_BITS = 62
_NOTES_UNSORTED = 50
_DOUBT_RUNS = 4  # quality is runs / (runs + 4) of what it would be after very many runs

_WORD = re.compile(r"[^\W_]+")
_SMALL_WORDS = frozenset(
    ["a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to", "with"]
)
_LONG_PLURALS = ("sses", "shes", "ches", "xes", "zes")


# --- labels


@lru_cache(maxsize=65_536)
def words(label: str) -> frozenset[str]:
    """Give the words of a label that count: lower case, without small words, plurals folded."""
    found = _WORD.findall(unicodedata.normalize("NFKC", label).lower())
    return frozenset(_singular(word) for word in found if word not in _SMALL_WORDS)


def _singular(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s"):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(_LONG_PLURALS):
        return word[:-2]
    return word if word[-2] in "sui" else word[:-1]


def closeness(a: str, b: str) -> Fraction:
    """Give the share of words that two labels have in common, from 0 to 1; 0 where neither has any."""
    return -_distance(words(a), words(b))[1]


Distance = tuple[int, Fraction]
"""What sorts ratios from the highest to the lowest: whole numbers decide, and where those are alike the ratios."""


def distances(task: str, labels: Iterable[str]) -> dict[str, Distance]:
    """Give how far labels are from a task, without those that have no word in common with it."""
    ours = words(task)
    return {label: far for label in labels if (far := _distance(ours, words(label)))[1]}


def _distance(ours: frozenset[str], theirs: frozenset[str]) -> Distance:
    common = len(ours & theirs)
    return _distance_of(common, len(ours) + len(theirs) - common)


@lru_cache(maxsize=4096)
def _distance_of(common: int, together: int) -> Distance:
    return falling(Fraction(common, together or 1))


def falling(value: Fraction) -> Distance:
    """Give what sorts ratios from the highest to the lowest, without much arithmetic of ratios."""
    return -((value.numerator << _KEY_BITS) // value.denominator), -value


# --- records and what they add up to


@dataclass(frozen=True, slots=True)
class Record:
    """One signed record as it counts.

    `cost` and `price` are base units of the payment token: what the record's calls cost, and what one call of the
    session costs. `judge_score` is 0 to 100, None where nobody judged; `latency_ms` milliseconds. `recorded_at` is the
    time in seconds by which notes are the latest; records of one second go by session and tool.
    """

    service_id: int
    session_id: str
    tool: str
    need: str
    task: str
    worked: bool
    calls: int
    judge_score: int | None
    latency_ms: int
    cost: int
    price: int
    note: str
    recorded_at: int

    @property
    def weight(self) -> int:
        """What it weighs: what it paid; a failure that paid nothing weighs one call."""
        return self.cost if self.worked or self.cost else self.price


Note = tuple[int, str, str, str]
"""Time, session, tool and text of a note."""


def _newest_first(note: Note) -> tuple[int, str, str]:
    return -note[0], note[1], note[2]


@dataclass(slots=True)
class Summary:
    """What the records of one group add up to, in whatever order they come.

    `latencies` are those of the records that worked, ascending; `notes` the latest ones, the newest first. Of many
    records each is counted, and then all are settled: only then are the latencies in their order.
    """

    runs: int = 0
    worked_weight: int = 0
    total_weight: int = 0
    judge_sum: int = 0
    judged: int = 0
    calls: int = 0
    cost: int = 0
    latencies: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    _standing: Distance | None = field(default=None, init=False, repr=False, compare=False)

    def copy(self) -> "Summary":
        """Give one that is added to without this one."""
        return replace(self, latencies=self.latencies[:], notes=self.notes[:])

    def add(self, record: Record) -> None:
        """Count one more record, and settle."""
        self.count(record)
        self.settle()

    def settle(self) -> None:
        """Bring what was counted into its order, which costs next to nothing where it nearly is."""
        self.latencies.sort()
        self._keep_notes()

    def _keep_notes(self) -> None:
        self.notes.sort(key=_newest_first)
        del self.notes[NOTES_KEPT:]

    def count(self, record: Record) -> None:
        """Count one more record, to be settled."""
        weight = record.weight
        self._standing = None
        self.runs += 1
        self.total_weight += weight
        self.calls += record.calls
        self.cost += record.cost
        if record.worked:
            self.worked_weight += weight
            self.latencies.append(record.latency_ms)
        if record.judge_score is not None:
            self.judge_sum += record.judge_score
            self.judged += 1
        if record.note:
            self.notes.append((record.recorded_at, record.session_id, record.tool, record.note))
            if len(self.notes) > _NOTES_UNSORTED:
                self._keep_notes()

    @property
    def worked_rate(self) -> Fraction | None:
        """The share, by weight, of what worked; None where nothing weighs anything."""
        return Fraction(self.worked_weight, self.total_weight) if self.total_weight else None

    @property
    def judge_score(self) -> Fraction | None:
        """The mean score, 0 to 100, of the records that were judged; None where none was."""
        return Fraction(self.judge_sum, self.judged) if self.judged else None

    @property
    def median_latency(self) -> Fraction | None:
        """The median latency in milliseconds of the records that worked: of two middle ones their mean."""
        count = len(self.latencies)
        if not count:
            return None
        return Fraction(self.latencies[(count - 1) // 2] + self.latencies[count // 2], 2)

    @property
    def cost_per_call(self) -> Fraction | None:
        """What a call cost on average, in base units; None where no record has a call."""
        return Fraction(self.cost, self.calls) if self.calls else None

    @property
    def quality(self) -> Fraction:
        """How good and how well tested, from 0 to 1: worked rate x judge's score x runs / (runs + 4)."""
        return -self.standing[1]

    @property
    def standing(self) -> Distance:
        """What sorts by quality, the best first."""
        if self._standing is None:
            # One ratio of products: to multiply three ratios would take six times as long.
            worked, weight = (self.worked_weight, self.total_weight) if self.total_weight else (0, 1)
            score, full = (self.judge_sum, self.judged * _FULL_SCORE) if self.judged else _UNJUDGED
            self._standing = falling(Fraction(worked * score * self.runs, weight * full * (self.runs + _DOUBT_RUNS)))
        return self._standing


Group = tuple[int, str, str]
"""Service, tool, and the need or the task label that its records have in common."""


def by_need(records: Iterable[Record]) -> dict[Group, Summary]:
    """Sum up records per service, tool and need."""
    return _summed(records, attrgetter("service_id", "tool", "need"))


def by_task(records: Iterable[Record]) -> dict[Group, Summary]:
    """Sum up, per service, tool and task label, the records that name a task."""
    return _summed((record for record in records if record.task), attrgetter("service_id", "tool", "task"))


def _summed(records: Iterable[Record], group_of: Callable[[Record], Group]) -> dict[Group, Summary]:
    summaries: dict[Group, Summary] = defaultdict(Summary)
    for record in records:
        summaries[group_of(record)].count(record)
    for summary in summaries.values():
        summary.settle()
    return dict(summaries)


def sentence(label: str, summary: Summary) -> str:
    """Say what a group found, without what is unknown: `Tested for data:crypto: 92/100 over 12 runs · 96% ok · 8 s`."""
    score, worked, latency = summary.judge_score, summary.worked_rate, summary.median_latency
    runs = reasons.plural(summary.runs, "run")
    parts = [f"{rounded(score)}/100 over {runs}" if score is not None else runs]
    if worked is not None:
        parts.append(f"{rounded(worked * 100)}% ok")
    if latency is not None:
        parts.append(_duration(latency))
    return f"{f'Tested for {label}' if label else 'Tested'}: {' · '.join(parts)}"


def headline(needs: Mapping[tuple[str, str], Summary]) -> tuple[str, Summary] | None:
    """Give the need that a listing was tried for most, a named one if there is one; None where nobody tried it."""
    if not needs:
        return None
    tool, need = min(needs, key=lambda group: (not group[1], -needs[group].runs, -needs[group].quality, group))
    return need, needs[tool, need]


def rounded(value: Fraction) -> int:
    """Give the nearest whole number, the higher of two: only where something is printed."""
    return int(value + Fraction(1, 2))  # half up; Python's round goes to even


def _duration(milliseconds: Fraction) -> str:
    seconds = milliseconds / 1000
    return f"{rounded(seconds)} s" if seconds >= 1 else f"{rounded(milliseconds)} ms"


# --- which listing is best


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing and what is known of it: its summaries by tool and need, and by tool and task label.

    `price` is base units; `rating` is the operator's, from 0 to 1.
    """

    service_id: int
    price: int
    rating: Fraction
    needs: Mapping[tuple[str, str], Summary]
    tasks: Mapping[tuple[str, str], Summary]


@dataclass(frozen=True, slots=True)
class Match:
    """Why a listing stands where it does: the tool and label whose experience counts, and how close the label is.

    `label` is a task where `closeness` is above 0, else the need, and None where nobody has tried the listing for
    either.
    """

    listing: Listing
    tool: str | None
    label: str | None
    closeness: Fraction
    is_for_need: bool
    summary: Summary
    is_trusted: bool


def best(listings: Iterable[Listing], task: str, need: str) -> list[Match]:
    """Rank listings for a task and a need, the best first; those that nobody tried for either come last, by price."""
    known = tuple(listings)
    labels = {label for listing in known for _, label in listing.tasks}
    return best_near(known, distances(task, labels), need)


def best_near(listings: Iterable[Listing], far: Mapping[str, Distance], need: str) -> list[Match]:
    """Rank listings as `best` does, for whoever has the distances already of all labels that have one."""
    ranked = sorted((_placed(listing, far, need) for listing in listings), key=itemgetter(0))
    return [match for _, match in ranked]


_FARTHEST: Distance = (0, Fraction(0))
_UNTRIED = Summary()


def _placed(listing: Listing, far: Mapping[str, Distance], need: str) -> tuple["_Rank", Match]:
    is_for_need = bool(need) and any(known == need for _, known in listing.needs)
    distance, tool, label, summary = _evidence(listing, far, need)
    near = -distance[1]
    match = Match(listing, tool, label, near, is_for_need, summary, _is_trusted(near, summary))
    return _rank(match, distance), match


def _evidence(
    listing: Listing, far: Mapping[str, Distance], need: str
) -> tuple[Distance, str | None, str | None, Summary]:
    """Give the group that a listing is judged by: the nearest label's, else the need's."""
    found = [(far[label], tool, label, of) for (tool, label), of in listing.tasks.items() if label in far]
    if not found and need:
        found = [(_FARTHEST, tool, known, of) for (tool, known), of in listing.needs.items() if known == need]
    return min(found, key=_by_weight) if found else (_FARTHEST, None, None, _UNTRIED)


def _by_weight(entry: tuple[Distance, str, str, Summary]) -> tuple[Distance, Distance, int, str, str]:
    distance, tool, label, summary = entry
    return distance, summary.standing, -summary.runs, tool, label


def _is_trusted(near: Fraction, summary: Summary) -> bool:
    worked = summary.worked_rate
    return near == 1 and summary.runs >= TRUSTED_RUNS and worked is not None and worked >= TRUSTED_RATE


_Rank = tuple[bool, Distance, bool, Distance, int, int, Fraction, bool, Fraction, int]


def _rank(match: Match, distance: Distance) -> _Rank:
    listing, summary = match.listing, match.summary
    latency = summary.median_latency
    return (
        match.label is None,
        distance,
        not match.is_for_need,
        summary.standing,
        -summary.runs,
        listing.price,
        -listing.rating,
        latency is None,
        latency or Fraction(0),
        listing.service_id,
    )
