"""Recurring runs: the schedule is in a file, so that a restart knows it, and what was missed in between is said."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.job import Job
from apscheduler.jobstores.base import ConflictingIdError, JobLookupError
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger

from indexer.errors import UserError

MAX_SCHEDULES: Final = 100
GRACE_SECONDS: Final = 3600
"""How late a run may still begin: later it is missed, and said to be. Of several that are late one is made."""
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_EVERY: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])")

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


def every(text: str) -> IntervalTrigger:
    """Read `30s`, `5m`, `2h` or `1d`. Raises UserError."""
    found = _EVERY.fullmatch(text)
    if found is None:
        raise UserError(f"{text[:80]!r} is no interval: give a number and s, m, h or d, such as 30s.")
    return IntervalTrigger(seconds=int(timedelta(**{_UNITS[found[2]]: int(found[1])}).total_seconds()), timezone="UTC")


def cron(text: str) -> CronTrigger:
    """Read the five fields of a crontab line, in UTC. Raises UserError."""
    try:
        return CronTrigger.from_crontab(text, timezone="UTC")
    except ValueError as error:
        raise UserError(f"{text[:80]!r} is no cron line ({error}): give five fields, such as '0 7 * * 1-5'.") from None


class Schedules:
    """The schedules in one file. While they are served, each run is made by `work`, one at a time."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._say = say
        self._scheduler = BackgroundScheduler(
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
        """Stop, after the run that is being made."""
        self._scheduler.shutdown(wait=True)

    def add(self, schedule_id: str, workflow: Path, trigger: IntervalTrigger | CronTrigger) -> None:
        """Add a schedule, or change the one of that id."""
        if len(self._scheduler.get_jobs()) >= MAX_SCHEDULES:
            raise UserError(f"There are {MAX_SCHEDULES} schedules: take one out with `counterfoil agent unschedule`.")
        try:
            self._scheduler.add_job(due, trigger, args=[str(workflow.resolve())], id=schedule_id, replace_existing=True)
        except (ConflictingIdError, ValueError) as error:
            raise UserError(f"The schedule cannot be kept: {error}.") from error

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
        """Make every run when it is due, until told to stop."""
        _work[:] = [work]
        self._scheduler.resume()
        try:
            stop.wait()
        finally:
            _work.clear()

    def _missed(self, event: JobEvent) -> None:
        self._say(f"{event.job_id}: a run was left out, since the one before took its time or nobody was there")


def _entry(job: Job) -> Entry:
    moment: Any = job.next_run_time
    return Entry(
        str(job.id), str(job.args[0]), str(job.trigger), moment.isoformat(timespec="seconds") if moment else ""
    )
