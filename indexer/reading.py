"""A process that only reads a chain: while this one writes a range, another core reads and checks the next one.

Python runs one thread at a time, so a backfill in one process waits for its own reading. The child is a `Source` of
its own, asked over a pipe. What it is to read stands in no argument and no variable, since URLs may hold keys. It ends
when the pipe does, however this process ended.
"""

import fcntl
import pickle
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, fields
from functools import partial
from selectors import EVENT_READ, DefaultSelector
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Any

from indexer.chain import Header, Log
from indexer.deployment import Deployment
from indexer.errors import UnavailableError
from indexer.garbage import rare_collections
from indexer.proof import Cost
from indexer.rpc import HttpRpc
from indexer.source import BlockRange, Source, Verify, never, stopping

_COMMAND = [sys.executable or "", "-P", "-c", "from indexer.reading import main; main()"]

_PIPE_BYTES = 1 << 20
"""As much as Linux grants a user for a few pipes; where it does not, a pipe is as large as it is."""
_LENGTH_BYTES = 8
_LOOK_SECONDS = 0.1
"""How often it is looked whether an answer is still wanted."""
_Asked = tuple[int, int, int]
"""First and last block, and the node's newest one."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a child is to read: one node, by the options of `HttpRpc`, about one deployment."""

    url: str = field(repr=False)
    seconds: float
    max_bytes: int
    deployment: Deployment
    verify: Verify


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one range, as plain tuples, which cross a pipe several times as fast as named ones."""

    headers: list[tuple[Any, ...]]
    logs: list[tuple[Any, ...]]
    lie: str | None
    error: Exception | None
    cost: Cost
    told: list[str]
    """Why logs could not be verified as well as they should be."""

    def range(self) -> BlockRange:
        """Give the range, or raise what the child raised."""
        if self.error is not None:
            raise self.error
        return BlockRange(tuple(map(Header._make, self.headers)), tuple(map(Log._make, self.logs)), self.lie)


_FORMS = repr([Header._fields, Log._fields, [(field.name, field.type) for field in (*fields(Task), *fields(Answer))]])
"""What two processes have to agree on to understand each other."""


class Reader:
    """Reads ranges in a child. `stop` and `close` may come from any thread."""

    def __init__(self, task: Task, is_over: Callable[[], bool] = never) -> None:
        """Once `is_over` is true, nothing more is waited for."""
        self._task = task
        self._is_over = is_over
        self._lock = threading.Lock()
        self._child: Popen[bytes] | None = None
        self._heard: Popen[bytes] | None = None
        self.is_usable = True
        """False once a child failed or the reader was closed: it starts no other."""

    def start(self) -> None:
        """Start the child, unless one runs or this one has failed: it gets ready meanwhile."""
        if self.is_usable:
            self._running()

    def read(self, first: int, last: int, newest: int) -> Answer:
        """Have a range read; `newest` is the node's newest block. UnavailableError where the child is gone."""
        child = self._running()
        try:
            if child is not self._heard:
                self._greet(child)
            _send(child.stdin, (first, last, newest))
            answer = _answer(self._receive(child))
        except Exception:  # noqa: BLE001 - it ended, is of another version, or something else spoke in its place
            self._failed(child)
            raise UnavailableError(
                "The process that reads the chain ended; this one reads from now on. If it ends often, set "
                "COUNTERFOIL_READER_BLOCKS=0."
            ) from None
        return answer

    def _greet(self, child: Popen[bytes]) -> None:
        """Give a child its task, having seen that it speaks as we do: the program on the disk may be another by now."""
        if self._receive(child) != _FORMS:
            raise EOFError
        _send(child.stdin, self._task)
        self._heard = child

    @property
    def is_ready(self) -> bool:
        """Whether a child has begun to listen; one that ended instead is found when it is asked."""
        child = self._child
        return child is not None and (child is self._heard or _says(child, 0))

    @property
    def is_starting(self) -> bool:
        """Whether there is a child that does not listen yet."""
        return self._child is not None and not self.is_ready

    def stop(self) -> None:
        """End the child, and with it what it reads; the next range starts another."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            _end(child)

    def close(self) -> None:
        """End the child for good."""
        self.is_usable = False
        self.stop()

    def _receive(self, child: Popen[bytes]) -> object:
        """Wait for what a child says. EOFError when it has ended, or is no longer wanted."""
        while not _says(child, _LOOK_SECONDS):
            if self._is_over() or self._child is not child:
                raise EOFError
        return _receive(child.stdout)

    def _running(self) -> Popen[bytes]:
        with self._lock:
            if not self.is_usable:
                raise stopping()
            if self._child is None:
                self._child = self._started()
            return self._child

    def _started(self) -> Popen[bytes]:
        # In a session of its own: what interrupts this process must not cut a range of the child's in two.
        try:
            child = Popen(  # noqa: S603 - our own interpreter
                _COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
            )
        except OSError as error:
            self.is_usable = False
            raise UnavailableError(
                f"No process to read the chain can be started ({error}); this one reads from now on. Or set "
                "COUNTERFOIL_READER_BLOCKS=0."
            ) from None
        with suppress(OSError, AttributeError):  # not every system can, nor lets every user
            fcntl.fcntl(_open(child.stdout), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return child

    def _failed(self, child: Popen[bytes]) -> None:
        """Take note that a child is gone; one that was stopped on purpose is not this reader's any more."""
        with self._lock:
            if self._child is child:
                self._child, self.is_usable = None, False
        _end(child)


def _end(child: Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _answer(said: object) -> Answer:
    if not isinstance(said, Answer):
        raise TypeError(type(said).__name__)
    return said


def _says(child: Popen[bytes], seconds: float) -> bool:
    """Tell whether a child says something within some seconds, or has ended."""
    with DefaultSelector() as selector:
        selector.register(_open(child.stdout), EVENT_READ)
        return bool(selector.select(seconds))


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise OSError("there is no pipe")
    return pipe


def _send(pipe: IO[bytes] | None, value: object) -> None:
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    _open(pipe).write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
    _open(pipe).flush()


def _receive(pipe: IO[bytes] | None) -> object:
    length = int.from_bytes(_exactly(pipe, _LENGTH_BYTES), "big")
    return pickle.loads(_exactly(pipe, length))  # noqa: S301 - the other end is a process of ours, and nobody else's


def _exactly(pipe: IO[bytes] | None, count: int) -> bytes:
    """Read it in one call: pickle would take it piece by piece, and wait for the writing thread each time."""
    found = _open(pipe).read(count)
    if len(found) < count:
        raise EOFError
    return found


# --- the child


def main() -> None:
    """Answer what comes over the standard input until it ends."""
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever prints must not come between the answers
    with suppress(EOFError, OSError, KeyboardInterrupt):
        _send(answers, _FORMS)
        task = _receive(asked)
        if isinstance(task, Task):
            serve(task, asked, answers)


def serve(task: Task, asked: IO[bytes], answers: IO[bytes]) -> None:
    """Answer ranges until the pipe ends, with EOFError or OSError."""
    told: list[str] = []
    with rare_collections(), HttpRpc(task.url, seconds=task.seconds, max_bytes=task.max_bytes) as rpc:
        is_over = partial(_is_closed, asked)
        source = Source(rpc, task.deployment, verify=task.verify, weakened=told.append, is_over=is_over)
        while True:
            asked_now: _Asked = _receive(asked)  # type: ignore[assignment]
            first, last, source.newest = asked_now
            _send(answers, _read(source, first, last, told))
            told.clear()


def _is_closed(pipe: IO[bytes]) -> bool:
    """Tell whether the other end of a pipe is gone."""
    watch = select.poll()
    watch.register(pipe, select.POLLHUP)
    return bool(watch.poll(0))


def _read(source: Source, first: int, last: int, told: list[str]) -> Answer:
    found, failure, before = BlockRange((), ()), None, copy(source.cost)
    try:
        found = source.fetch(first, last)
    except Exception as error:  # noqa: BLE001 - it is raised again where the range was asked for
        failure = error
    headers, logs = list(map(tuple, found.headers)), list(map(tuple, found.logs))
    return Answer(headers, logs, found.lie, failure, source.cost.since(before), list(told))
