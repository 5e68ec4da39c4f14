"""Resident memory over a long backfill: the real contracts trade and are indexed in turns, so that neither waits long.

The node forgets transactions that were indexed long ago; this process keeps nothing of a round that is over, so what
grows here is the indexer's. Sessions, and with them most keys, are new ones all along.
"""

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.indexing_chain import EVENTS_A_ROUND, Market, running_market
from benchmarks.indexing_stores import databases
from indexer.rpc import HttpRpc
from indexer.store.writer import open_writer
from indexer.sync import run_once

_STEP = 50_000
_KEPT_BLOCKS = 2 * _STEP // EVENTS_A_ROUND
_SETTLED_STEPS = 4  # until caches of fixed size are full


def print_memory(events: int) -> None:
    """Index so many events into SQLite, and print the resident memory after every 50,000."""
    with (
        tempfile.TemporaryDirectory() as folder,
        databases("sqlite", Path(folder)) as new,
        running_market("--transaction-block-keeper", str(_KEPT_BLOCKS)) as market,
        HttpRpc(market.world.url) as rpc,
        open_writer(new(), market.world.deployment()) as writer,
    ):
        print(f"{'events':>10} {'resident MiB':>13}")
        curve = _curve(market, events, lambda: run_once(writer, rpc).logs)
    settled = curve[_SETTLED_STEPS:]
    if settled:
        growth = (settled[-1][1] - settled[0][1]) / (settled[-1][0] - settled[0][0] or 1) * 1e6
        print(f"\ngrowth after the first {curve[_SETTLED_STEPS][0]:,} events: {growth:+.1f} MiB a million events")


def _curve(market: Market, events: int, index: Callable[[], int]) -> list[tuple[int, float]]:
    points: list[tuple[int, float]] = []
    indexed = 0
    while indexed < events:
        for _ in range(_STEP // EVENTS_A_ROUND):
            market.trade()
        indexed += index()
        points.append((indexed, _resident()))
        print(f"{indexed:10,} {points[-1][1]:13.1f}", flush=True)
    return points


def _resident() -> float:
    """MiB of this process that are in memory."""
    gc.collect()
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) / 1024
