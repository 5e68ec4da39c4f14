"""How a backfill goes on: a bar on a terminal, elsewhere a line every few seconds."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog
from rich.progress import BarColumn, Progress, TextColumn

from counterfoil.cli.output import console
from indexer.notices import Notice, Observer, Stepped

LINE_SECONDS = 5.0
_SAMPLES = 20
_SAMPLE_SECONDS = 0.5

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Speed:
    """How far a run is: blocks of those there are, logs a second, and seconds left (None: not known yet)."""

    block: int
    head: int
    logs_per_second: int
    seconds_left: int | None

    def __str__(self) -> str:
        share = 100 * self.block // self.head if self.head else 100
        left = "" if self.seconds_left is None else f", {span(self.seconds_left)} left"
        return f"block {self.block:,} of {self.head:,} ({share}%), {self.logs_per_second:,} logs/s{left}"


def span(seconds: int) -> str:
    """A length of time, as `40 s`, `5 min` or `3 h 20 min`."""
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


class Pace:
    """Measures speed over the latest samples, so that a change of pace soon shows in the time left."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._logs = 0
        self._samples: deque[tuple[float, int, int]] = deque(maxlen=_SAMPLES)

    def take(self, step: Stepped) -> Speed:
        """Count a step in."""
        self._logs += step.logs
        now, block, head = self._clock(), step.cursor.number, step.head.number
        if not self._samples:
            self._samples.append((now, block - step.blocks, 0))
        elif now - self._samples[-1][0] >= _SAMPLE_SECONDS:
            self._samples.append((now, block, self._logs))
        then, first, logs = self._samples[0]
        elapsed = now - then
        if elapsed <= 0:
            return Speed(block, head, 0, None)
        blocks = (block - first) / elapsed
        left = round((head - block) / blocks) if blocks > 0 else None
        return Speed(block, head, round((self._logs - logs) / elapsed), left)


def lines(clock: Clock = time.monotonic) -> Observer:
    """Log a line every LINE_SECONDS while the run is behind the head."""
    log, pace, told = structlog.get_logger(), Pace(clock), clock()

    def observe(notice: Notice) -> None:
        nonlocal told
        if not isinstance(notice, Stepped):
            return
        speed = pace.take(notice)
        if notice.outcome == "advanced" and speed.block < speed.head and clock() - told >= LINE_SECONDS:
            told = clock()
            log.info(
                "progress", logs_per_second=speed.logs_per_second, seconds_left=speed.seconds_left,
                message=f"Indexing: {speed}.",
            )  # fmt: skip

    return observe


@contextmanager
def bar() -> Iterator[Observer]:
    """Show a bar on stderr until the block is left."""
    pace, first = Pace(), None
    columns = (TextColumn("indexing"), BarColumn(), TextColumn("{task.fields[speed]}"))
    with Progress(*columns, console=console(err=True), transient=True) as shown:
        task = shown.add_task("indexing", total=None, speed="")

        def observe(notice: Notice) -> None:
            nonlocal first
            if not isinstance(notice, Stepped):
                return
            speed = pace.take(notice)
            first = speed.block - notice.blocks if first is None else first
            done, total = speed.block - first, max(1, speed.head - first)
            shown.update(task, completed=done, total=total, speed=str(speed))

        yield observe


@contextmanager
def shown(as_bar: bool) -> Iterator[Observer]:
    """Show progress as a bar where stderr is a terminal and it is wanted, else in lines."""
    if as_bar and console(err=True).is_terminal:
        with bar() as observer:
            yield observer
    else:
        yield lines()
