"""The demo's processes: started with their output in a file, ended by their handles.

Their ids stand in a file from the moment they start, so that what a killed demo left behind can be ended too.
"""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from indexer.errors import UserError

STOP_SECONDS = 10
POLL_SECONDS = 0.05
IDS = "processes.json"
COMMANDS = (b"anvil", b"counterfoil")


class Processes:
    """Processes that end with the block they were started in, unless they are kept."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._folder = home / "logs"
        self._ids = home / IDS
        own = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}
        self._environment = {**own, **environment}
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Self:
        """Start with none."""
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all, the last one first."""
        for _, process in reversed(self._running):
            end(process)
        if self._running:
            self._ids.unlink(missing_ok=True)

    def start(self, name: str, command: Sequence[str], own: Mapping[str, str] | None = None) -> None:
        """Start one, with variables of its `own`; its output goes to `<name>.log`.

        A keyboard interrupt does not reach it: it is ended in order.
        """
        environment = {**self._environment, **(own or {})}
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - the demo's own commands
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment, start_new_session=True
            )
        self._running.append((name, process))
        self._ids.write_text(json.dumps({name: process.pid for name, process in self._running}))

    def run(self, name: str, command: Sequence[str]) -> str:
        """Run one to its end and give what it printed. Raises UserError with its last words if it fails."""
        done = subprocess.run(  # noqa: S603 - the demo's own commands
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=self._environment, check=False
        )
        (self._folder / f"{name}.log").write_text(done.stdout + done.stderr)
        if done.returncode != 0:
            raise UserError(f"{name} failed: {_last_words(done.stdout + done.stderr)}")
        return done.stdout

    def wait(self, name: str, ready: Callable[[], bool], seconds: float = 60) -> None:
        """Wait until a process is ready. Raises UserError when it ended or takes too long."""
        deadline = time.monotonic() + seconds
        process = dict(self._running)[name]
        while not ready():
            log = self._folder / f"{name}.log"
            if process.poll() is not None:
                raise UserError(f"{name} ended with exit code {process.returncode}: {_last_words(log.read_text())}")
            if time.monotonic() > deadline:
                raise UserError(f"{name} is not ready after {seconds:g} s; its output is in {log}")
            time.sleep(POLL_SECONDS)

    def keep(self) -> None:
        """Leave all running; `end_left` ends them."""
        for _, process in self._running:
            # The interpreter would warn of a child that outlives it, which is what is wanted here.
            process.returncode = 0
        self._running.clear()


def end_left(home: Path) -> list[str]:
    """End what an earlier demo in this folder left running, and give the names."""
    path = home / IDS
    if not path.exists():
        return []
    left = [(name, pid) for name, pid in reversed(json.loads(path.read_text()).items()) if _is_ours(pid)]
    for _, pid in left:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while any(_is_ours(pid) for _, pid in left) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for _, pid in left:
        if _is_ours(pid):
            os.kill(pid, signal.SIGKILL)
    path.unlink()
    return [name for name, _ in left]


def _is_ours(pid: int) -> bool:
    """Whether an id can still be the demo's, since ids are used again: it leads a session, and its command is ours."""
    try:
        if os.getsid(pid) != pid:
            return False
        command = Path(f"/proc/{pid}/cmdline")
        return any(word in command.read_bytes() for word in COMMANDS) if command.exists() else True
    except (ProcessLookupError, PermissionError, FileNotFoundError):
        return False


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and make it after ten seconds."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_SECONDS)


def free_ports(count: int, first: int = 0) -> tuple[int, ...]:
    """So many free ports of the loopback address, all different; the first is `first` if nobody has it."""
    with ExitStack() as probes:
        return tuple(_free_port(probes.enter_context(socket.socket()), first if i == 0 else 0) for i in range(count))


def _free_port(probe: socket.socket, wanted: int) -> int:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind(("127.0.0.1", wanted))
    except OSError:
        probe.bind(("127.0.0.1", 0))
    return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    """Whether something listens at a port of the loopback address."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[:400] or "it printed nothing"
