"""Processes of the real command without the wait for its imports.

A process that has imported the product forks for each order; the child calls the same `main` as the command
`counterfoil` does, with its own arguments, environment, output files and limits, and can be killed by its id.
"""

import importlib
import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS_BETWEEN_CHECKPOINTS = 20
"""The chains of these tests are short: with the product's own number no kill would fall into a checkpoint."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code (negative: the signal), and what it printed."""

    code: int
    out: str
    err: str


class Child:
    """A process of the command."""

    def __init__(self, forge, pid, folder):
        self.pid = pid
        self._forge, self._folder = forge, folder

    def signal(self, number):
        os.kill(self.pid, number)

    def await_end(self):
        """Wait for its end; its id stays its own until `wait`."""
        self._forge.order({"await": self.pid})

    def wait(self):
        """Wait for its end, and give it."""
        code = self._forge.order({"reap": self.pid})
        out, err = (Path(self._folder, name).read_text(errors="replace") for name in ("out", "err"))
        return Ended(code, out, err)


class Forge:
    """The process that forks; `modules` are what its children need not import. It waits for one child at a time."""

    def __init__(self, *modules):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.sim.forge", *modules],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def start(self, arguments, settings, folder, max_file_bytes=None):
        """Start `counterfoil` with these arguments and settings; its output goes to files in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("out", "err"):  # a kill may come before the child opens them
            (folder / name).write_bytes(b"")
        environment = {f"COUNTERFOIL_{name.upper()}": str(value) for name, value in settings.items()}
        pid = self.order(
            {"arguments": arguments, "environment": environment, "folder": str(folder), "bytes": max_file_bytes}
        )
        return Child(self, pid, folder)

    def order(self, document):
        """Send an order and give the number that answers it."""
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    """Serve orders from standard input until it ends."""
    import counterfoil.chain.connection
    import counterfoil.cli.index  # noqa: F401 - what the command imports when it runs
    from indexer.store import checkpoints

    for name in sys.argv[1:]:
        importlib.import_module(name)
    checkpoints._ROWS = ROWS_BETWEEN_CHECKPOINTS
    for line in sys.stdin:
        print(_obey(json.loads(line)), flush=True)


def _obey(order):
    if "await" in order:
        os.waitid(os.P_PID, order["await"], os.WEXITED | os.WNOWAIT)
        return 0
    if "reap" in order:
        return os.waitstatus_to_exitcode(os.waitpid(order["reap"], 0)[1])
    return _fork(order)


def _fork(order):
    pid = os.fork()
    if pid == 0:
        _become_the_command(order)
    return pid


def _become_the_command(order):
    from counterfoil.cli.main import main as command

    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(order["folder"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(order["environment"])
    if order["bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["bytes"], order["bytes"]))  # Python ignores SIGXFSZ
    try:
        command(order["arguments"])
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
    except BaseException:  # noqa: BLE001 - a traceback is what the judge looks for
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
