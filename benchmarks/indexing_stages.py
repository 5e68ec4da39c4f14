"""Where the time of an indexing run goes: the main thread's place is looked at some hundred times a second."""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import indexer

_SECONDS = 0.002
_HOME = str(Path(indexer.__file__).parent) + "/"
_STAGES = {
    "http.py": "transfer",
    "rpc.py": "JSON",
    "receipts.py": "verify",
    "source.py": "check",
    "chain.py": "parse",
    "decode.py": "decode",
    "fold.py": "fold",
    "project.py": "fold",
    "digest.py": "digest",
    "store/current.py": "read current rows",
    "store/writer.py": "make rows",
    "store/bulk.py": "insert",
    "store/database.py": "commit",
    "sync.py": "loop",
    "ahead.py": "wait for what is read ahead",
}
_CLOSING = "close versions"


@contextmanager
def sampled() -> Iterator[Counter[str]]:
    """Count the seconds that the main thread spends in each stage, while the block runs.

    A timer's signal interrupts it, not a thread, which would be let in mostly where another one waits. A long call of
    the database's counts whole: what has passed since the last look is the stage's in which the signal is seen.
    """
    seconds: Counter[str] = Counter()
    last = time.perf_counter()

    def look(_: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.perf_counter()
        seconds[_stage(frame) or "other"] += now - last
        last = now

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS, _SECONDS)
    try:
        yield seconds
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _stage(frame: FrameType | None) -> str | None:
    """The innermost of our functions says what a thread does; None where it runs none of them."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_HOME) and (stage := _STAGES.get(name.removeprefix(_HOME))):
            return _CLOSING if frame.f_code.co_name.startswith("_close") else stage
        frame = frame.f_back
    return None
