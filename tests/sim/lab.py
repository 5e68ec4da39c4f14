"""One fault, one store, one seed: the product runs through the proxy, and what it wrote is judged.

It is right when all rows and the digest are those of a clean index of the same chain, which was built without the
proxy, or when it stopped with a sentence and what it has is what a clean index has up to the same block.
"""

import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from unittest import mock

from indexer.errors import IndexerError
from indexer.notices import Retried
from indexer.reading import Reader
from indexer.service import index_run
from indexer.settings import Settings
from indexer.store.compare import examine
from indexer.store.database import open_store
from tests.sim.stores import SqliteStore, differences

LONGEST_PAUSE = 0.01
ARRIVAL_SECONDS = 60


class Outcome(StrEnum):
    """How a run ended."""

    EXACT = "exact"
    STOPPED = "stopped"
    WRONG = "wrong"


@dataclass(frozen=True)
class Verdict:
    """How a run ended; `why` is the sentence it stopped with, or what is wrong."""

    outcome: Outcome
    why: str = ""


EXACT = Verdict(Outcome.EXACT)


class Hurry(threading.Event):
    """A stop event whose waits are cut short, so that the product's pauses cost no time; it remembers their lengths."""

    def __init__(self):
        super().__init__()
        self.pauses = []

    def wait(self, timeout=None):
        self.pauses.append(timeout)
        return super().wait(LONGEST_PAUSE if timeout is None else min(timeout, LONGEST_PAUSE))


@contextmanager
def ready_readers():
    """Have a process that reads be waited for: these chains are so short that they would be read before it begins."""
    start = Reader.start

    def start_and_wait(self):
        start(self)
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while self.is_usable and not self.is_ready and time.monotonic() < deadline:
            time.sleep(LONGEST_PAUSE)

    with mock.patch.object(Reader, "start", start_and_wait):
        yield


@dataclass
class Reference:
    """A clean index of a chain, in a file of its own."""

    store: SqliteStore
    snapshot: object


@dataclass
class Lab:
    """Where a fault is played: a world with its deployment file, a proxy before it, a fresh store, and a seed.

    The seed says whether another process reads, or the one that writes. `stores` makes more stores of the kind; `forge`
    gives the process that forks commands.
    """

    world: object
    proxy: object
    store: object
    stores: object
    forge: Callable
    home: Path
    size: object
    seed: object
    verify: str
    references: list
    stop: Hurry = field(default_factory=Hurry)
    notices: list = field(default_factory=list)

    def __post_init__(self):
        self.rng = random.Random(f"lab/{self.seed}")
        self.reader_blocks = random.Random(f"reader/{self.seed}").choice([0, 1])
        folder = self.home / "deployments"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "31337.json").write_text(json.dumps(self.world.document()))

    def settings(self, **changes):
        given = {
            "home": self.home,
            "rpc_url": self.proxy.url,
            "database": self.store.url,
            "poll_seconds": 0.01,
            "max_range_blocks": 40,
            "verify": self.verify,
            "reader_blocks": self.reader_blocks,
        }
        return Settings(**(given | changes))

    # --- the product

    def observe(self, notice):
        """Keep what the run tells of itself."""
        self.notices.append(notice)

    def run(self, **changes):
        """Catch up once; gives the error that ended it."""
        try:
            with ready_readers():
                self.result = index_run(self.settings(**changes), observer=self.observe, stop=self.stop)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
            return error
        return None

    @contextmanager
    def following(self, **changes):
        """Follow the chain in a thread until the block ends."""
        with ready_readers():
            running = Running(self, self.settings(**changes))
            try:
                yield running
            finally:
                running.end()

    def follow_to_head(self, **changes):
        """Follow until the chain's head is indexed; gives what kept it from that."""
        with self.following(**changes) as running:
            running.arrive(self.world.hash_at())
        return running.error

    # --- the judge

    def remember(self, world=None):
        """Build a clean index of the chain as it is now; what is written may be compared with it."""
        self.references.append(build_reference(world or self.world, self.home / f"clean-{len(self.references)}"))
        return self.references[-1]

    def judge(self, error=None, *references):
        """Compare what was written with the last reference, or with any of those given."""
        among = references or tuple(self.references[-1:])
        if error is not None:
            return self._judge_stopped(error, among)
        found = self.store.snapshot()
        if found.cursor != among[-1].snapshot.cursor:
            return Verdict(Outcome.WRONG, f"ended at {found.cursor}, the chain at {among[-1].snapshot.cursor}")
        why = self._faults(found, among[-1])
        return Verdict(Outcome.WRONG, why) if why else EXACT

    def _judge_stopped(self, error, among):
        if not is_sentence(error):
            return Verdict(Outcome.WRONG, f"no sentence: {type(error).__name__}: {error}")
        why = self.written_wrong(among)
        return Verdict(Outcome.WRONG, f"{why} (after: {error})") if why else Verdict(Outcome.STOPPED, str(error))

    def written_wrong(self, among):
        """Say what of the rows is wrong, wherever the index has come to."""
        found = self.store.snapshot()
        if found.cursor is None:
            filled = [name for name, rows in found.rows.items() if rows]
            return f"rows without a cursor in {', '.join(filled)}" if filled else ""
        for reference in among:
            if reference.snapshot.holds(*found.cursor):
                return self._faults(found, reference)
        return f"its block {found.cursor} is on no chain that there was"

    def _faults(self, found, reference):
        expected = reference.snapshot.up_to(found.cursor[0])
        wrong = differences(found.rows, expected)
        if wrong:
            return "; ".join(wrong)
        with open_store(self.store.url) as ours, open_store(reference.store.url) as theirs:
            return examine(ours, theirs).why or ""


class Running:
    """The product following in a thread."""

    def __init__(self, lab, settings):
        self.lab = lab
        self.error = None
        self._stop = Hurry()
        self._thread = threading.Thread(target=self._run, args=(settings,))
        self._thread.start()

    def arrive(self, block_hash):
        """Wait until the block with this hash is the last that is indexed."""
        self.until(lambda: (self.lab.store.cursor() or (0, ""))[1] == block_hash)

    def until(self, true):
        """Wait until something is so, or the run has ended."""
        deadline = time.monotonic() + ARRIVAL_SECONDS
        while self._thread.is_alive() and self.error is None and not true():
            if time.monotonic() > deadline:
                failures = [notice.error for notice in self.lab.notices if isinstance(notice, Retried)]
                at, last = self.lab.store.cursor(), failures[-1] if failures else "nothing failed"
                self.error = TimeoutError(f"still at {at} after {ARRIVAL_SECONDS} s; the last retry: {last}")
            self._thread.join(0.01)

    def end(self):
        self._stop.set()
        self._thread.join()
        self.lab.stop.pauses += self._stop.pauses

    def _run(self, settings):
        try:
            index_run(settings, True, self.lab.observe, stop=self._stop)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
            self.error = error


def is_sentence(error):
    """One of the product's own errors, in words that a person can use."""
    text = str(error)
    return isinstance(error, IndexerError) and text.endswith((".", "?")) and "Traceback" not in text and len(text) > 20


def build_reference(world, home):
    """A clean index, from the node itself; its logs are all those that the receipts of the chain hold."""
    home.mkdir(parents=True)
    (home / "deployment.json").write_text(json.dumps(world.document()))
    store = SqliteStore(home / "clean.sqlite")
    index_run(
        Settings(
            home=home,
            rpc_url=world.url,
            database=store.url,
            deployment=home / "deployment.json",
            verify="full",
        )
    )
    reference = Reference(store, store.snapshot())
    _check_against_receipts(world, reference.snapshot)
    return reference


def _check_against_receipts(world, snapshot):
    """Whatever the product thinks of its own rows: its raw logs must be those of the chain's receipts."""
    ours = {entry["address"].lower() for name, (_, entry) in world.names.items() if name != "TestToken"}
    blocks = world.rpc.batch([("eth_getBlockReceipts", [hex(number)]) for number in range(world.head() + 1)])
    logs = [log for receipts in blocks for receipt in receipts for log in receipt["logs"]]
    true = {_identity(log) for log in logs if log["address"].lower() in ours}
    held = {(row["block_number"], row["log_index"], row["block_hash"], row["data"]) for row in snapshot.rows["raw_log"]}
    assert held == true, f"a clean index lacks {len(true - held)} logs and has {len(held - true)} too many"


def _identity(log):
    return int(log["blockNumber"], 16), int(log["logIndex"], 16), log["blockHash"], log["data"]
