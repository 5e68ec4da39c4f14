"""What an agent's own runs learned, in a SQLite file: it ranks services where the directory is out of reach.

The order is the directory's own (docs/directory.md), over the agent's own records, all operators being unrated and a
service's price that of its newest session.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from counterfoil.agent.local_database import LocalDatabase
from counterfoil.agent.rating import median
from counterfoil.directory.board import Experience
from counterfoil.routing.experience import Listing, Match, Record, sentence
from counterfoil.routing.experience import best as ranked

MAX_ROWS: Final = 10_000
_VERSION = 1
_UNRATED = Fraction(1, 2)
# Amounts can pass 64 bits: they are kept as text. The columns stand as the fields of Lesson do.
_SCHEMA = """
create table lesson (
    session_id text not null, tool text not null, service_id integer not null, category text not null,
    operator text not null, need text not null, task text not null, worked integer not null, calls integer not null,
    failures integer not null, judge_score integer, latency_ms integer not null, cost text not null,
    price_per_call text not null, note text not null, learned_at integer not null, primary key (session_id, tool)
) strict;
create index by_category on lesson (category);
create index by_service on lesson (service_id)
"""
_AMOUNTS = ("cost", "price_per_call")
_KEEP = """
insert into lesson values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (session_id, tool) do nothing
"""
_FORGET = """
delete from lesson where rowid in
(select rowid from lesson order by learned_at desc, session_id desc, tool desc limit -1 offset ?)
"""
_ALL = "select * from lesson order by learned_at desc, session_id desc, tool desc"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one session taught of one tool, with the fields of its experience record.

    `cost` and `price_per_call` are base units, `latency_ms` milliseconds, `judge_score` 0 to 100 or None, `learned_at`
    the time in seconds.
    """

    session_id: str
    tool: str
    service_id: int
    category: str
    operator: str
    need: str
    task: str
    worked: bool
    calls: int
    failures: int
    judge_score: int | None
    latency_ms: int
    cost: int
    price_per_call: int
    note: str
    learned_at: int

    def record(self) -> Record:
        """Give it as the directory counts it."""
        return Record(
            service_id=self.service_id,
            session_id=self.session_id,
            tool=self.tool,
            need=self.need,
            task=self.task,
            worked=self.worked,
            calls=self.calls,
            judge_score=self.judge_score,
            latency_ms=self.latency_ms,
            cost=self.cost,
            price=self.price_per_call,
            note=self.note,
            recorded_at=self.learned_at,
        )


@dataclass(frozen=True, slots=True)
class Learned:
    """A service that own runs tried for a task or a need: where it is, and what was found, in a sentence.

    `label` is the task label that is nearest, with its `closeness` from 0 to 1, or the need with a closeness of 0;
    `price_per_call` is that of the newest session, in base units.
    """

    service_id: int
    category: str
    operator: str
    price_per_call: int
    tool: str
    label: str
    closeness: Fraction
    is_trusted: bool
    sentence: str


class Memory:
    """The lessons in a file, `max_rows` at most. Raises UserError for a file that cannot be used."""

    def __init__(self, path: Path, *, max_rows: int = MAX_ROWS) -> None:
        self._database = LocalDatabase(path, _SCHEMA, _VERSION)
        self._max_rows = max_rows

    def learn(self, lesson: Lesson) -> None:
        """Keep a lesson; the first of a session and tool stands. Beyond `max_rows` the oldest go."""
        values = [str(value) if name in _AMOUNTS else value for name, value in _named(lesson)]
        with self._database.writing() as connection:
            connection.execute(_KEEP, values)
            connection.execute(_FORGET, (self._max_rows,))

    def lessons(self) -> list[Lesson]:
        """Give all that is kept, the newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(_ALL).fetchall() if connection else []
        return [_lesson(row) for row in rows]

    def best(self, task: str, need: str) -> list[Learned]:
        """Rank the services that were tried for the task or the need, the best first."""
        lessons = self.lessons()
        newest: dict[int, Lesson] = {}
        for lesson in lessons:
            newest.setdefault(lesson.service_id, lesson)
        matches = ranked(_listings(lessons, newest), task, need)
        return [_learned(match, newest[match.listing.service_id]) for match in matches if match.label is not None]

    def median_latency(self, category: str) -> int | None:
        """Give the median latency, in milliseconds, of what worked in a category; None where nothing did."""
        query = "select latency_ms from lesson where category = ? and worked"
        with self._database.reading() as connection:
            return median([row[0] for row in connection.execute(query, (category,))]) if connection else None

    def category_of(self, service_id: int) -> str | None:
        """Give the category of a service that own runs used, None of another."""
        query = "select category from lesson where service_id = ? limit 1"  # it never changes
        with self._database.reading() as connection:
            row = connection.execute(query, (service_id,)).fetchone() if connection else None
        return row[0] if row else None


def _named(lesson: Lesson) -> Iterable[tuple[str, int | str | None]]:
    return zip(Lesson.__slots__, astuple(lesson), strict=True)


def _lesson(row: tuple[int | str | None, ...]) -> Lesson:
    values = dict(zip(Lesson.__slots__, row, strict=True))
    amounts = {name: int(str(values[name])) for name in _AMOUNTS}
    return Lesson(**{**values, **amounts, "worked": bool(values["worked"])})  # type: ignore[arg-type]


def _listings(lessons: Iterable[Lesson], newest: dict[int, Lesson]) -> list[Listing]:
    known: dict[int, Experience] = defaultdict(Experience)
    for lesson in lessons:
        known[lesson.service_id].count(lesson.record())
    for experience in known.values():
        experience.settle()
    return [
        Listing(service_id, newest[service_id].price_per_call, _UNRATED, of.needs, of.tasks)
        for service_id, of in known.items()
    ]


def _learned(match: Match, newest: Lesson) -> Learned:
    label = match.label or ""
    return Learned(
        service_id=newest.service_id,
        category=newest.category,
        operator=newest.operator,
        price_per_call=newest.price_per_call,
        tool=match.tool or "",
        label=label,
        closeness=match.closeness,
        is_trusted=match.is_trusted,
        sentence=sentence(label, match.summary),
    )
