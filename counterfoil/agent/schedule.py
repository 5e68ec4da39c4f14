"""Recurring runs: the schedule is in a file, so that a restart knows it, and what was missed in between is said."""

import fcntl
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.job import Job
from apscheduler.jobstores.base import JobLookupError
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import STATE_RUNNING
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
from sqlalchemy.exc import SQLAlchemyError

from indexer.errors import UserError

MAX_SCHEDULES: Final = 100
GRACE_SECONDS: Final = 3600
"""How late a run may still begin: later it is missed, and said to be. Of several that are late one is made."""
LOOK_SECONDS: Final = 1
"""How often a process that serves looks for schedules that others added."""
_MAX_ID: Final = 64
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_EVERY: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAY: Final = f"[0-7]|{'|'.join(_DAYS)}"
_SPAN: Final = re.compile(rf"(?:\*|({_DAY})(?:-({_DAY}))?)(?:/([1-7]))?")

_LOG: Final = logging.getLogger(__name__)
_LOG.setLevel(logging.ERROR)  # what is left out is said in our own words

Work = Callable[[str], None]
_work: list[Work] = []


def due(workflow: str) -> None:
    """What the file names as each schedule's work: whoever serves the schedules says what that is."""
    for work in _work:
        work(workflow)


@dataclass(frozen=True, slots=True)
class Entry:
    """A schedule: the workflow's path, when it is due, and its next run (ISO 8601, "" while none is set)."""

    schedule_id: str
    workflow: str
    when: str
    next_run: str


@dataclass(frozen=True, slots=True)
class When:
    """When runs are due, and how its user says that."""

    text: str
    trigger: IntervalTrigger | CronTrigger


class BusySchedulesError(UserError):
    """Schedules that another process serves."""


def every(text: str) -> When:
    """Read `30s`, `5m`, `2h` or `1d`; the first run is due one interval from now. Raises UserError."""
    found = _EVERY.fullmatch(text)
    if found is None:
        raise UserError(f"{text[:80]!r} is no interval: give a number and s, m, h or d, such as 30s.")
    seconds = int(timedelta(**{_UNITS[found[2]]: int(found[1])}).total_seconds())
    return When(f"every {text}", IntervalTrigger(seconds=seconds, timezone="UTC"))


def cron(text: str) -> When:
    """Read the five fields of a crontab line, in UTC; 0 and 7 are Sunday. Raises UserError."""
    try:
        trigger = CronTrigger.from_crontab(_with_named_days(text.lower()), timezone="UTC")
        never = trigger.get_next_fire_time(None, datetime.now(UTC)) is None
    except ValueError as error:
        raise UserError(f"{text[:80]!r} is no cron line ({error}): give five fields, such as '0 7 * * 1-5'.") from None
    if never:
        raise UserError(f"{text[:80]!r} is never due: correct its day and month.")
    return When(f"cron {' '.join(text.split())} (UTC)", trigger)


def _with_named_days(line: str) -> str:
    """The line with names for its days of the week: crontab counts them from Sunday, APScheduler from Monday."""
    fields = line.split()
    if len(fields) != 5:
        raise ValueError(f"it has {len(fields)} fields")
    day, weekday = fields[2], fields[4]
    if not day.startswith("*") and not weekday.startswith("*"):
        raise ValueError("it names days of the month and of the week: make a schedule of each")
    if weekday != "*":
        days = {number % len(_DAYS) for part in weekday.split(",") for number in _span(part)}
        fields[4] = ",".join(_DAYS[number] for number in sorted(days))
    return " ".join(fields)


def _span(part: str) -> range:
    found = _SPAN.fullmatch(part)
    if found is None:
        raise ValueError(f"{part[:20]!r} is no day of the week")
    first, last, step = found.groups()
    start = 0 if first is None else _number(first)
    end = 6 if first is None or (step and not last) else _number(last or first)
    if last and end == 0:
        end = 7  # Sunday ends a week too
    if start > end:
        raise ValueError(f"{part[:20]!r} ends before it begins")
    return range(start, end + 1, int(step or 1))


def _number(day: str) -> int:
    return int(day) if day.isdigit() else _DAYS.index(day)


class _Scheduler(BackgroundScheduler):  # type: ignore[misc]
    """Begins nothing unless it is told to: APScheduler's own would once more when it is shut down, and lose the run."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        self.looking = threading.Lock()
        super().__init__(**options)

    def _process_jobs(self) -> float | None:
        with self.looking:
            if self.state != STATE_RUNNING:
                return None
            try:
                seconds: float | None = super()._process_jobs()
            except (JobLookupError, SQLAlchemyError):  # another process took a schedule out, or holds the file
                return LOOK_SECONDS
            return seconds


class Schedules:
    """The schedules in one file. While they are served, each run is made by `work`, one at a time."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._say = say
        self._scheduler = _Scheduler(
            logger=_LOG,
            jobstores={"default": SQLAlchemyJobStore(url=f"sqlite:///{path}")},
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": GRACE_SECONDS},
            timezone="UTC",
        )
        self._scheduler.add_listener(self._missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)

    def __enter__(self) -> "Schedules":
        """Open the file; nothing runs yet."""
        self._scheduler.start(paused=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)

    def add(self, schedule_id: str, workflow: Path, when: When) -> None:
        """Add a schedule, or change the one of that id. Raises UserError for a bad id, and for one too many."""
        if not (0 < len(schedule_id) <= _MAX_ID and schedule_id.isprintable()):
            raise UserError(f"{schedule_id[:80]!r} is no name of a schedule: give 1 to {_MAX_ID} printable characters.")
        others = [job for job in self._scheduler.get_jobs() if job.id != schedule_id]
        if len(others) >= MAX_SCHEDULES:
            raise UserError(f"There are {MAX_SCHEDULES} schedules: take one out with `counterfoil agent unschedule`.")
        self._scheduler.add_job(
            due, when.trigger, args=[str(workflow.resolve())], id=schedule_id, name=when.text, replace_existing=True
        )

    def remove(self, schedule_id: str) -> None:
        """Take a schedule out. Raises UserError where there is none."""
        try:
            self._scheduler.remove_job(schedule_id)
        except JobLookupError:
            raise UserError(
                f"There is no schedule {schedule_id[:80]!r}: `counterfoil agent schedules` lists them."
            ) from None

    def entries(self) -> list[Entry]:
        """List the schedules, the next one first."""
        return [_entry(job) for job in self._scheduler.get_jobs()]

    def serve(self, work: Work, stop: threading.Event) -> None:
        """Make every run when it is due, until told to stop. Raises BusySchedulesError where another process does."""

        def unless_stopped(workflow: str) -> None:
            if stop.is_set():
                self._say(f"{workflow}: a run is left out, since this process ends")
            else:
                work(workflow)

        with self._alone():
            _work[:] = [unless_stopped]
            self._catch_up()
            self._scheduler.resume()
            try:
                while not stop.wait(LOOK_SECONDS):
                    self._scheduler.wakeup()
            finally:
                with self._scheduler.looking:
                    self._scheduler.pause()
                self._scheduler.shutdown(wait=True)
                _work.clear()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Two processes would make each run twice."""
        with self._path.with_suffix(".lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise BusySchedulesError("Another process makes the runs of these schedules: end it first.") from None
            yield

    def _catch_up(self) -> None:
        """Say what was due while nobody was there, and leave of it what is late by no more than GRACE_SECONDS."""
        now = datetime.now(UTC)
        for job in self._scheduler.get_jobs():
            if job.next_run_time is None or job.next_run_time >= now:
                continue
            due_at = job.trigger.get_next_fire_time(None, now - timedelta(seconds=GRACE_SECONDS))
            late = due_at is not None and due_at <= now
            follows = "one run makes up for it" if late else "that is too long ago for a run"
            self._say(f"{job.id}: was due at {_moment(job.next_run_time)} and nobody was there; {follows}")
            job.modify(next_run_time=due_at)

    def _missed(self, event: JobEvent) -> None:
        before = "the one before is not done" if event.code == EVENT_JOB_MAX_INSTANCES else "others took too long"
        self._say(f"{event.job_id}: a run is left out, since {before}")


def _entry(job: Job) -> Entry:
    return Entry(str(job.id), str(job.args[0]), str(job.name), _moment(job.next_run_time))


def _moment(moment: Any) -> str:  # noqa: ANN401
    return moment.isoformat(timespec="seconds") if moment else ""
