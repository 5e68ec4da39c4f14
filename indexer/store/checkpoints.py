"""SQLite's log of writes goes into the file by a thread of its own, while the writer makes its next range.

The database would do so within a commit, and a tenth of a backfill would be waiting for it. It still does once the log
has 128 MiB. What a checkpoint fails at harms nothing: the log stays, and commits tell what is wrong with that.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

_ROWS = 4000
"""How many logs and blocks are written between two checkpoints."""


class Checkpoints:
    """Moves the log of one SQLite file now and then. What the writer has not committed is none of its business."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows = 0
        self._due = threading.Event()
        self._over = False

    def wrote(self, rows: int) -> None:
        """Take note of rows that were committed."""
        self._rows += rows
        if self._rows >= _ROWS:
            self._rows = 0
            self._due.set()

    def run(self) -> None:
        """Work until `end`."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=NORMAL")
            while self._due.wait():
                self._due.clear()
                if self._over:  # looked at after what would wipe out that it was said
                    return
                with suppress(sqlite3.Error):  # a full disk may be free again the next time
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def end(self) -> None:
        """Have the work end, after a checkpoint that runs."""
        self._over = True
        self._due.set()


@contextmanager
def running_checkpoints(path: str) -> Iterator[Checkpoints]:
    """Move the log of a file in the background while the block runs; where the system gives no thread, not at all."""
    checkpoints = Checkpoints(path)
    thread = threading.Thread(target=checkpoints.run, name="checkpoints", daemon=True)
    with suppress(RuntimeError):
        thread.start()
    try:
        yield checkpoints
    finally:
        checkpoints.end()
        if thread.ident is not None:
            thread.join()
