"""Where the time of an indexing run goes: every thread's place is looked at some hundred times a second."""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import indexer

_SECONDS = 0.002
_SWITCH_SECONDS = 0.0005  # so that the sampler is let in soon after its time
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
}
_CLOSING = "close versions"


@contextmanager
def sampled() -> Iterator[Counter[str]]:
    """Count the seconds that all threads together spend in each stage, while the block runs."""
    seconds: Counter[str] = Counter()
    ended = threading.Event()
    sampler = threading.Thread(target=_sample, args=(seconds, ended))
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    sampler.start()
    try:
        yield seconds
    finally:
        ended.set()
        sampler.join()
        sys.setswitchinterval(before)


def _sample(seconds: Counter[str], ended: threading.Event) -> None:
    last = time.perf_counter()
    while not ended.wait(_SECONDS):
        now = time.perf_counter()
        for thread, frame in sys._current_frames().items():
            if thread != threading.get_ident() and (stage := _stage(frame)):
                seconds[stage] += now - last
        last = now


def _stage(frame: FrameType | None) -> str | None:
    """The innermost of our functions says what a thread does; None where it runs none of them."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_HOME) and (stage := _STAGES.get(name.removeprefix(_HOME))):
            return _CLOSING if frame.f_code.co_name.startswith("_close") else stage
        frame = frame.f_back
    return None
