"""What `make sim` does, cut into jobs that several processes take in turn, each with its own chains and databases."""

import multiprocessing
import multiprocessing.util
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass

from tests.sim.case import FULL
from tests.sim.cases import BY_NAME, CASES
from tests.sim.kills import kill_often
from tests.sim.lives import FAULTS, end_lives
from tests.sim.stage import Stage
from tests.sim.walk import walk

KILLS_A_JOB = 25
NO_STORE = "-"
"""Stands for the database where a job is about agents and nodes."""
_stage: Stage


@dataclass(frozen=True)
class Job:
    """One case, some kills of an index, of agents and nodes (`lives`), or one walk. `count` is of kills or steps."""

    what: str
    store: str
    verify: str
    seed: int
    name: str = ""
    count: int = 0


@dataclass(frozen=True)
class Done:
    """How a job ended. `found` is what its table shows: a verdict, kills or a walk, as a dictionary."""

    job: Job
    seconds: float
    found: dict

    @property
    def wrong(self) -> bool:
        """Tell whether it ended otherwise than it has to."""
        if self.job.what in ("kills", "lives"):
            return bool(self.found["wrong"] or self.found.get("lost"))
        if self.job.what == "walk":
            return self.found["verdict"]["outcome"] != "exact"
        return self.found["outcome"] != BY_NAME[self.job.name].expected(self.job.verify)


def plan(stores, seeds, kills, walks, steps, match, lives=0) -> list[Job]:
    """List the jobs, the long ones first. Bloom mode differs in reading only, so one store shows it."""
    jobs = [
        Job("lives", NO_STORE, NO_STORE, seeds[0] + at, fault, count)
        for fault in FAULTS
        for at, count in enumerate(_shares(lives))
    ]
    for store in stores:
        sizes = _shares(kills)
        jobs += [Job("kills", store, "full", seeds[0] + at, "kill -9", count) for at, count in enumerate(sizes)]
        jobs += [Job("walk", store, "full", seeds[0] + at, "walk", steps) for at in range(walks)]
        cases = [case for case in CASES if store in case.stores]
        jobs += [Job("case", store, "full", seed, case.name) for case in cases for seed in seeds]
    if "sqlite" in stores:
        cases = [case for case in CASES if case.group != "process"]
        jobs += [Job("case", "sqlite", "bloom", seed, case.name) for case in cases for seed in seeds]
    return [job for job in jobs if match in job.name]


def _shares(kills):
    """Cut so many kills into jobs."""
    return [KILLS_A_JOB] * (kills // KILLS_A_JOB) + [kills % KILLS_A_JOB] * (kills % KILLS_A_JOB > 0)


def run_all(jobs, workers) -> Iterator[Done]:
    """Give each job's end as it comes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin) as pool:
        try:
            for future in as_completed([pool.submit(_run, job) for job in jobs]):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin():
    global _stage
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    _stage = Stage(FULL)
    multiprocessing.util.Finalize(None, _stage.close, exitpriority=1)


def _run(job):
    began = time.monotonic()
    found = _found(job)
    return Done(job, time.monotonic() - began, asdict(found))


def _found(job):
    if job.what == "kills":
        return kill_often(_stage, job.store, job.count, job.seed)
    if job.what == "lives":
        return end_lives(job.name, job.count, job.seed)
    if job.what == "walk":
        return walk(_stage, job.store, job.count, job.seed)
    return _stage.play(BY_NAME[job.name], job.store, job.seed, job.verify)
