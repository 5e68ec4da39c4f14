"""How long a block takes to become rows: `python benchmarks/latency.py` prints a table; see --help for choices.

A market of the real contracts trades a round of about a hundred events a block on anvil, at a fixed pace; the index
follows. The time is taken from the node's answer that the block is mined to the first query that sees its rows.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import quantiles

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path[:1]:
    sys.path.insert(0, str(ROOT))  # run by its path, Python looks beside this file only

from benchmarks.indexing_chain import Market, running_market  # noqa: E402
from benchmarks.indexing_stores import databases  # noqa: E402
from indexer import query  # noqa: E402
from indexer.errors import UserError  # noqa: E402
from indexer.settings import Settings  # noqa: E402
from indexer.store.database import Store, open_store  # noqa: E402

_LOOK_SECONDS = 0.001
_WAIT_SECONDS = 0.1
_PATIENCE_SECONDS = 60


def main() -> None:
    """Measure, and print a row for each store, way of hearing of blocks, and pace."""
    chosen = _arguments()
    print(f"{'store':12} {'hears by':10} {'blocks/s':>9} {'blocks':>7} {'p50 ms':>8} {'p99 ms':>8} {'most ms':>8}")
    ways = ["polling", "websocket"] if "rpc_websocket_url" in Settings.model_fields else ["polling"]
    for store in chosen.stores:
        for way in ways:
            _print_way(store, way, chosen)


def _print_way(store: str, way: str, chosen: argparse.Namespace) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        databases(store, Path(name)) as new,
        running_market() as market,
        _following(market, Path(name), _settings(market, way, name, new(), chosen)) as reader,
    ):
        for pace in chosen.paces:
            seconds = sorted(_latencies(market, reader, chosen.blocks, pace))
            cuts = quantiles(seconds, n=100, method="inclusive")
            figures = " ".join(f"{value * 1e3:8.1f}" for value in (cuts[49], cuts[98], seconds[-1]))
            print(f"{store:12} {way:10} {pace:9g} {len(seconds):7} {figures}", flush=True)


def _settings(market: Market, way: str, home: str, database: str, chosen: argparse.Namespace) -> dict[str, str]:
    url = market.world.url
    settings = {"home": home, "rpc_url": url, "database": database, "poll_seconds": str(chosen.poll_seconds)}
    return settings | ({"rpc_websocket_url": url.replace("http", "ws")} if way == "websocket" else {})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--blocks", type=int, default=40, help="blocks at each pace; 200 for a figure to keep")
    parser.add_argument("--paces", type=float, nargs="+", default=[1, 20], help="blocks a second")
    parser.add_argument("--stores", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--poll-seconds", type=float, default=Settings().poll_seconds, help="how often the index asks")
    return parser.parse_args()


def _latencies(market: Market, reader: Store, blocks: int, pace: float) -> list[float]:
    """Mine blocks at a pace while another thread looks for them; gives the seconds that each took to be seen."""
    first = market.head + 1
    seen: dict[int, float] = {}
    watcher = threading.Thread(target=_watch, args=(reader, first, first + blocks - 1, seen))
    watcher.start()
    mined: dict[int, float] = {}
    begun = time.perf_counter()
    for number in range(blocks):
        market.send()
        time.sleep(max(0, begun + number / pace - time.perf_counter()))
        block = market.mine()
        mined[block] = time.perf_counter()
    watcher.join()
    if seen.keys() != mined.keys():
        raise RuntimeError("the index did not come to the last block; run `counterfoil index run --follow` to see why")
    return [seen[block] - at for block, at in mined.items()]


def _watch(reader: Store, first: int, last: int, seen: dict[int, float]) -> None:
    """Ask over and over which block is the newest, and note when each one was there."""
    patience = time.perf_counter() + _PATIENCE_SECONDS
    while first <= last and time.perf_counter() < patience:
        block = query.as_of(reader).block
        now = time.perf_counter()
        if block >= first:
            seen.update(dict.fromkeys(range(first, min(block, last) + 1), now))
            first, patience = block + 1, now + _PATIENCE_SECONDS
        time.sleep(_LOOK_SECONDS)


@contextmanager
def _following(market: Market, folder: Path, settings: dict[str, str]) -> Iterator[Store]:
    """Run `counterfoil index run --follow` in a process of its own, and open what it fills."""
    deployments = folder / "deployments"
    deployments.mkdir()
    (deployments / "31337.json").write_text(json.dumps(market.world.document()))
    environment = {f"COUNTERFOIL_{name.upper()}": value for name, value in settings.items()}
    command = [Path(sys.executable).with_name("counterfoil"), "index", "run", "--follow"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=os.environ | environment, **quiet) as process:
        try:
            _await_block(settings["database"], market.head)
            with open_store(settings["database"]) as reader:
                yield reader
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=_PATIENCE_SECONDS)


def _await_block(database: str, number: int) -> None:
    patience = time.perf_counter() + _PATIENCE_SECONDS
    while time.perf_counter() < patience:
        with suppress(UserError), open_store(database) as store:
            if query.as_of(store).block >= number:
                return
        time.sleep(_WAIT_SECONDS)
    raise RuntimeError("the index did not catch up; run `counterfoil index run` to see why")


if __name__ == "__main__":
    main()
