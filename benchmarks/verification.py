"""What it costs to believe nothing: events a second with `verify` as bloom and as full, into SQLite, in one run.

    python -m benchmarks.verification [EVENTS] [TURNS]

The two take turns on the same chain; the best turn of each counts, since whatever else runs only takes time away.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from benchmarks.indexing_chain import TradedChain, traded_chain
from indexer.rpc import HttpRpc
from indexer.store.writer import open_writer
from indexer.sync import SyncOptions, SyncResult, run_once

MODES: tuple[Literal["bloom", "full"], ...] = ("bloom", "full")
EVENTS = 20_000
TURNS = 3
WIDTHS = (9, 8, 9, 10, 7, 15, 7, 7, 11)

Turn = tuple[float, SyncResult]
"""Seconds of a backfill, and what it came to."""


def main(events: int = EVENTS, turns: int = TURNS) -> None:
    """Measure and print the table."""
    best: dict[str, Turn] = {}
    with traded_chain(events) as chain, tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            for mode in MODES:
                done = backfill(chain, Path(folder) / f"{mode}-{turn}.sqlite", mode)
                best[mode] = min(best.get(mode, done), done, key=lambda some: some[0])
    for line in table(best):
        print(line)


def backfill(chain: TradedChain, path: Path, mode: Literal["bloom", "full"]) -> Turn:
    """Index the chain from nothing."""
    with HttpRpc(chain.url) as rpc, open_writer(path, chain.deployment) as writer:
        begun = time.perf_counter()
        result = run_once(writer, rpc, options=SyncOptions(verify=mode))
        return time.perf_counter() - begun, result


def table(best: dict[str, Turn]) -> list[str]:
    """Give the lines of the table."""
    fastest = best["bloom"][1].logs / best["bloom"][0]
    names = ("events", "blocks", "seconds", "events/s", "ratio", "proven blocks", "calls", "MB", "s proving")
    lines = ["verify  " + "".join(f"{name:>{width}}" for name, width in zip(names, WIDTHS, strict=True))]
    for mode, (seconds, result) in best.items():
        rate = result.logs / seconds
        values = (
            f"{result.logs}",
            f"{result.blocks}",
            f"{seconds:.2f}",
            f"{rate:.0f}",
            f"{rate / fastest:.2f}",
            f"{result.verified_blocks}",
            f"{result.verification_calls}",
            f"{result.verification_bytes / 1e6:.1f}",
            f"{result.verification_seconds:.2f}",
        )
        lines.append(f"{mode:8}" + "".join(f"{value:>{width}}" for value, width in zip(values, WIDTHS, strict=True)))
    return lines


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
