"""How long a pick takes, from memory, from the database and from the lens on chain: `python benchmarks/routing.py`.

One market of up to 10,000 listings on anvil, with the real contracts, indexed into SQLite by the real indexer. All
figures are the best of several in one run. Before anything is timed, all ways have to give the same order.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from eth_abi import decode
from eth_hash.auto import keccak

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path[:1]:
    sys.path.insert(0, str(ROOT))  # run by its path, Python looks beside this file only

from counterfoil.market import LiveMarket, snapshot  # noqa: E402
from counterfoil.routing.lottery import NO_CAP, category_id, rank  # noqa: E402
from indexer.store.writer import Writer, open_writer  # noqa: E402
from indexer.sync import run_once  # noqa: E402
from tests.indexer.world import MIN_STAKE, World, anvil  # noqa: E402

SIZES = (10, 100, 1_000, 5_000, 10_000)
LENS_LISTINGS = 1_024
LENS_LENGTH = 16
LENS_GAS = 4_000_000_000
SESSIONS = 100
BATCH = 500
COLUMNS = {
    "cold": "cold rank and pick",
    "full": "cold rank and whole order",
    "warm": "pick from memory",
    "head": "the same, after asking the index whether it moved",
    "change": "taking in a block that changed one price",
    "database": "database read, rank and pick",
    "order": "the lens's order of 16, eth_call",
    "weights": "the lens's weights, eth_call",
}
Figures = dict[str, float | None]


def main() -> None:
    """Build the market, measure each size, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes = sorted(parser.parse_args().sizes)
    with ExitStack() as stack:
        world = World(stack.enter_context(anvil("--accounts", "3", "--disable-block-gas-limit"))).deploy()
        stack.callback(world.rpc.close)
        deploy_lens(world)
        fill(world, sizes)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        writer = stack.enter_context(open_writer(Path(folder) / "index.sqlite", world.deployment()))
        run_once(writer, world.rpc)
        live = LiveMarket(writer.store)
        report({size: measured(world, writer, live, size) for size in sizes})


def deploy_lens(world: World) -> None:
    """Add the one contract that the indexer does not read."""
    addresses = [world.names[name][1]["address"] for name in ("NodeRegistry", "SessionManager", "ReputationLedger")]
    world._create("RoutingLens", *addresses)


def category(size: int) -> str:
    """The category of so many listings."""
    return f"bench:{size}"


def fill(world: World, sizes: Sequence[int]) -> None:
    """Register as many nodes as the largest category has, list them in order of size, and open some sessions."""
    random = Random(4)
    nodes = max(sizes)
    started = time.perf_counter()
    calls = [("register_node", (f"http://node-{i}", random.randrange(MIN_STAKE, 10**6))) for i in range(nodes)]
    for size in sizes:
        prices = [random.randrange(10_000, 11_500) for _ in range(size)]
        calls += [("list_service", (node, category(size), price, "")) for node, price in enumerate(prices, 1)]
    send_all(world, calls)
    for _ in range(SESSIONS):
        world.open(world.accounts[1], 1 + random.randrange(sum(sizes)), deposit=10**5)
    print(f"{nodes} nodes, {sum(sizes)} listings, {SESSIONS} sessions in {time.perf_counter() - started:.0f} s")


def send_all(world: World, calls: Sequence[tuple[str, tuple[object, ...]]]) -> None:
    """Have one operator send calls of the registry, hundreds to a block."""
    registry, _ = world.names["NodeRegistry"]
    sender = world.accounts[0]
    first = int(str(world.rpc.call("eth_getTransactionCount", [sender, "latest"])), 16)
    world.rpc.call("evm_setAutomine", [False])
    for start in range(0, len(calls), BATCH):
        batch = [
            {"from": sender, "to": registry.address, "data": registry.data(function, *arguments),
             "gas": hex(600_000), "nonce": hex(first + start + place)}
            for place, (function, arguments) in enumerate(calls[start : start + BATCH])
        ]  # fmt: skip
        world.rpc.batch([("eth_sendTransaction", [transaction]) for transaction in batch])
        world.mine()
    world.rpc.call("evm_setAutomine", [True])
    sent = int(str(world.rpc.call("eth_getTransactionCount", [sender, "latest"])), 16) - first
    if sent != len(calls):
        raise RuntimeError(f"{sent} of {len(calls)} transactions were mined")


def measured(world: World, writer: Writer, live: LiveMarket, size: int) -> Figures:
    """Milliseconds of each way to rank one category."""
    name, store = category(size), writer.store
    agree(world, writer, live, size)
    plain, slate = tuple(snapshot(store, name).candidates), live.snapshot(name).candidates
    few = 7 if size > LENS_LISTINGS else 20
    figures: Figures = {
        "cold": best(few, lambda seed: rank(plain, seed).order[0]),
        "full": best(few, lambda seed: rank(plain, seed).order[:]),
        "warm": best(200, lambda seed: rank(slate, seed).order[0]),
        "head": best(200, lambda seed: rank(live.snapshot(name).candidates, seed).order[0]),
        "change": min(changes(world, writer, live, size)),
        "database": best(few, lambda seed: rank(snapshot(store, name).candidates, seed).order[0]),
        "order": None,
        "weights": None,
    }
    if size <= LENS_LISTINGS:
        figures["order"] = best(few, lambda seed: lens_order(world, size, seed))
        figures["weights"] = best(few, lambda _: lens(world, "weights", category_id(name), NO_CAP))
    return figures


def best(times: int, work: Callable[[bytes], object]) -> float:
    """Milliseconds of the quickest of some calls, each with its own seed: what else the machine does shows least."""
    found = []
    for i in range(times):
        seed = keccak(i.to_bytes(4, "big"))
        started = time.perf_counter()
        work(seed)
        found.append(1000 * (time.perf_counter() - started))
    return min(found)


def changes(world: World, writer: Writer, live: LiveMarket, size: int) -> Iterable[float]:
    """Milliseconds until the market in memory is that of the next block, in which one price of the category changed."""
    changed = live.snapshot(category(size)).candidates[size // 2]
    for i in range(15):
        world.send(world.accounts[0], "NodeRegistry", "set_price", changed.service_id, 10_000 + i)
        run_once(writer, world.rpc)
        started = time.perf_counter()
        live.head()
        yield 1000 * (time.perf_counter() - started)


def agree(world: World, writer: Writer, live: LiveMarket, size: int) -> None:
    """Stop unless memory, database and lens give the same order."""
    seed = keccak(category(size).encode())
    asked = rank(tuple(snapshot(writer.store, category(size)).candidates), seed)
    if len(asked.candidates) != size or rank(live.snapshot(category(size)).candidates, seed) != asked:
        raise RuntimeError(f"the market in memory is not the database's at {size} candidates")
    if size <= LENS_LISTINGS and lens_order(world, size, seed) != asked.order[:LENS_LENGTH]:
        raise RuntimeError(f"the lens gives another order at {size} candidates")


def lens_order(world: World, size: int, seed: bytes) -> tuple[int, ...]:
    """The first places of a draw, by the lens."""
    answer = lens(world, "order", category_id(category(size)), NO_CAP, seed, LENS_LENGTH)
    return tuple(decode(["uint256[]"], answer)[0])


def lens(world: World, function: str, *arguments: object) -> bytes:
    """Call the lens at the head."""
    contract, _ = world.names["RoutingLens"]
    call = {"to": contract.address, "data": contract.data(function, *arguments), "gas": hex(LENS_GAS)}
    return bytes.fromhex(str(world.rpc.call("eth_call", [call, "latest"]))[2:])


def report(found: dict[int, Figures]) -> None:
    """Print milliseconds, and how many picks from memory fit into the other ways."""
    print("\nmilliseconds, the best of several in one run")
    print(f"{'candidates':>10}" + "".join(f"{name:>11}" for name in COLUMNS))
    for size, figures in found.items():
        print(f"{size:>10,}" + "".join(f"{shown(figures[name], 3):>11}" for name in COLUMNS))
    print("\ntimes a pick from memory")
    for size, figures in found.items():
        ratios = {name: over(figures[name], figures["warm"]) for name in COLUMNS}
        print(f"{size:>10,}" + "".join(f"{shown(ratios[name], 1):>11}" for name in COLUMNS))
    print()
    for name, meaning in COLUMNS.items():
        print(f"{name:>10}  {meaning}")


def over(figure: float | None, unit: float | None) -> float | None:
    """A ratio, where there is one."""
    return figure / unit if figure is not None and unit else None


def shown(figure: float | None, digits: int) -> str:
    """A figure, or a dash where the lens has a limit."""
    return "-" if figure is None else f"{figure:,.{digits}f}"


if __name__ == "__main__":
    main()
