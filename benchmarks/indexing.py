"""How fast a backfill is: `python benchmarks/indexing.py` prints a table; --help lists what can be chosen.

A market of the real contracts trades on anvil; all its events are then indexed with raw rows, version rows and
digests, into SQLite and into PostgreSQL. Beside it, in the same run on the same chain: the least that one process must
do (transfer with JSON, decoding and bulk insert of the same rows, each alone), the naive way, and other indexers where
they are installed. Everything is kept in a temporary folder. "busy" is what this process took of the processor: the
node's and the server's own work, and the work of strangers on the machine, are in the other columns alone.
"""

import argparse
import gc
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path[:1]:
    sys.path.insert(0, str(ROOT))  # run by its path, Python looks beside this file only

from benchmarks import indexing_floor as floor  # noqa: E402
from benchmarks import indexing_naive as naive  # noqa: E402
from benchmarks.indexing_chain import EVENTS_A_ROUND, TradedChain, traded_chain  # noqa: E402
from benchmarks.indexing_memory import print_memory  # noqa: E402
from benchmarks.indexing_stages import sampled  # noqa: E402
from benchmarks.indexing_stores import NewDatabase, databases  # noqa: E402
from indexer.garbage import rare_collections  # noqa: E402
from indexer.providers import Provider  # noqa: E402
from indexer.ranges import RangeSize  # noqa: E402
from indexer.rpc import HttpRpc  # noqa: E402
from indexer.source import Source  # noqa: E402
from indexer.store.database import open_locked, open_store  # noqa: E402
from indexer.store.writer import open_writer  # noqa: E402
from indexer.sync import DEFAULTS, run_once  # noqa: E402

LEAST_OF_FLOOR, LEAST_TIMES_NAIVE, LEAST_TIMES_PEER = 0.65, 20, 2.5
PEERS = {"Ponder": "ponder", "DipDup": "dipdup", "Subsquid": "sqd"}
"""Other indexers, and the commands by which they are known to be installed."""
REMEMBERED = ("Subsquid 1.27, PostgreSQL", 5_700)
"""The best of several indexers and its events a second, measured once on this kind of machine over simpler events."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Some work on a number of events: the seconds that passed, and those for which this process had a processor."""

    name: str
    events: int
    seconds: float
    busy: float

    def __lt__(self, other: "Measured") -> bool:
        return self.seconds < other.seconds

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds


def main() -> None:
    """Measure, and print tables."""
    chosen = _arguments()
    if chosen.memory:
        print_memory(chosen.events or 1_000_000)
        return
    with traded_chain(chosen.events or 100_000) as chain, tempfile.TemporaryDirectory() as folder:
        logs = floor.transfer(chain)
        print(f"{len(logs):,} events in {chain.head:,} blocks; best of {chosen.repeat} runs each\n")
        shared = _shared_floor(chain, chosen.repeat, logs)
        with rare_collections(), sampled() as reading:
            _read(chain)
        _print_stages("reads, on another core", reading, len(logs))
        for store in chosen.stores:
            with databases(store, Path(folder)) as new:
                _print_store(store, chain, shared, new, chosen)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, help="events to make: 100000, and 1000000 with --memory")
    parser.add_argument("--naive-events", type=int, default=4000, help="events of the slice that the naive way indexes")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each measurement; the best one counts")
    parser.add_argument("--stores", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--memory", action="store_true", help="print the memory over a long backfill instead")
    return parser.parse_args()


def _best(name: str, events: int, repeat: int, work: Callable[[], object]) -> Measured:
    return min(_measured(name, events, work) for _ in range(repeat))


def _measured(name: str, events: int, work: Callable[[], object]) -> Measured:
    gc.collect()
    started, busy = time.perf_counter(), time.process_time()
    work()
    return Measured(name, events, time.perf_counter() - started, time.process_time() - busy)


def _shared_floor(chain: TradedChain, repeat: int, logs: Sequence[dict[str, object]]) -> list[Measured]:
    parts = list(floor.pieces(logs))
    return [
        _best("transfer and JSON alone", len(logs), repeat, lambda: floor.transfer(chain)),
        _best("decoding alone", len(logs), repeat, lambda: floor.decode(chain, parts)),
    ]


def _print_store(
    store: str, chain: TradedChain, shared: list[Measured], new: NewDatabase, chosen: argparse.Namespace
) -> None:
    events, repeat = shared[0].events, chosen.repeat
    filled = new()
    with sampled() as stages:
        _index(chain, filled)
    parts = [*shared, _insert(filled, new, events, repeat)]
    lowest = _sum("floor of one process: their sum", parts)
    ours = _best("Counterfoil: raw rows, versions, digests", events, repeat, lambda: _index(chain, new()))
    slow = _naive(chain, new(), chosen.naive_events, versions=True)
    slow_without = _naive(chain, new(), chosen.naive_events, versions=False)
    print(f"== {store}\n")
    _print_table([*parts, lowest, ours, slow, slow_without], lowest)
    _print_bars(ours, lowest, slow)
    _print_stages("writes", stages, events)


def _sum(name: str, parts: list[Measured]) -> Measured:
    return Measured(name, parts[0].events, sum(part.seconds for part in parts), sum(part.busy for part in parts))


def _index(chain: TradedChain, database: str) -> None:
    with open_writer(database, chain.deployment) as writer, HttpRpc(chain.url) as rpc:
        run_once(writer, rpc)


def _read(chain: TradedChain) -> None:
    with HttpRpc(chain.url) as rpc:
        size = RangeSize(DEFAULTS.first_range, DEFAULTS.max_range)
        for _ in Provider("", Source(rpc, chain.deployment), size).fetch_all(chain.deployment.first_block, chain.head):
            pass


def _insert(filled: str, new: NewDatabase, events: int, repeat: int) -> Measured:
    with open_store(filled) as store:
        rows = floor.stored_rows(store)
    name = f"bulk insert alone, {sum(map(len, rows.values())) / events:.2f} rows an event"
    return _best(name, events, repeat, lambda: _fill(new(), rows))


def _fill(database: str, rows: floor.Rows) -> None:
    """Insert into a new database and close it, as our own run does: SQLite has much to do when it is closed."""
    with open_locked(database) as empty:
        floor.insert(empty, rows)


def _naive(chain: TradedChain, database: str, events: int, *, versions: bool) -> Measured:
    counts: list[int] = []
    first = chain.head - events // EVENTS_A_ROUND
    work = partial(naive.index, chain, database, first, chain.head, versions=versions)
    found = _measured("", events, lambda: counts.append(work()))
    name = f"naive: web3.py, session.add, {counts[0]:,} events{'' if versions else ', no ends'}"
    return replace(found, name=name, events=counts[0])


def _print_table(rows: list[Measured], lowest: Measured) -> None:
    print(f"{'':48} {'events/s':>9} {'us/event':>9} {'of floor':>9} {'busy us':>9}")
    for row in rows:
        figures = (
            f"{row.rate:9,.0f} {1e6 / row.rate:9.1f} {row.rate / lowest.rate:9.2f} {row.busy / row.events * 1e6:9.1f}"
        )
        print(f"{row.name:48} {figures}")
    for peer, command in PEERS.items():
        found = "installed, but not driven by this benchmark" if shutil.which(command) else "not installed"
        print(f"{peer:48} {found}")
    print()


def _print_bars(ours: Measured, lowest: Measured, slow: Measured) -> None:
    name, rate = REMEMBERED
    bars = [
        ("of the floor", ours.rate / lowest.rate, LEAST_OF_FLOOR),
        ("times the naive way that ends versions", ours.rate / slow.rate, LEAST_TIMES_NAIVE),
        (f"times {name}: {rate:,}/s as remembered, not measured in this run", ours.rate / rate, LEAST_TIMES_PEER),
    ]
    for what, ratio, least in bars:
        print(f"{'met   ' if ratio >= least else 'missed'} {ratio:6.2f} {what}; the bar is {least}")
    print()


def _print_stages(process: str, stages: Counter[str], events: int) -> None:
    total = sum(stages.values())
    print(f"{f'where the time goes in the process that {process}':58} {'us/event':>9} {'share':>6}")
    for stage, seconds in stages.most_common():
        print(f"{stage:58} {seconds / events * 1e6:9.1f} {seconds / total:6.0%}")
    print()


if __name__ == "__main__":
    main()
