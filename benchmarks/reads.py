"""What questions cost in the past and at the head: `python benchmarks/reads.py` prints p50 and p99 for both databases.

A category of services, each with many versions of its price, stake, load and reputation, one node with a version in
every block. The rows are written straight into the tables: what is measured is how they are found. Blocks to ask for
are drawn from a seed. Everything is kept in a temporary folder.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path[:1]:
    sys.path.insert(0, str(ROOT))  # run by its path, Python looks beside this file only

from benchmarks.indexing_stores import databases  # noqa: E402
from indexer import query  # noqa: E402
from indexer.query import Store  # noqa: E402
from indexer.rows import Node, NodeLoad, NodeReputation, NodeStake, Service, Versioned, columns_of, values_of  # noqa: E402
from indexer.store.bulk import insert_rows  # noqa: E402
from indexer.store.database import open_locked  # noqa: E402
from indexer.store.tables import METADATA, table_of  # noqa: E402

CATEGORY = "data:crypto-price"
OPERATOR = "0x" + "0b" * 20
FIRST = 2
_ROWS_AT_ONCE = 50_000
Changes = tuple[type[Versioned], int, Callable[[int, int], Versioned]]
"""A row type, how many versions each key has, and the row of a key as of a block."""


def changes(versions: int) -> list[Changes]:
    """How often what changes: loads most, reputation and prices less, nodes hardly."""
    category_id = query.category_id(CATEGORY)
    return [
        (Node, 2, lambda key, at: Node(key, OPERATOR, f"http://node.example/{at}")),
        (NodeStake, versions // 4, lambda key, at: NodeStake(key, 10**10 + at, 0, 0)),
        (NodeLoad, versions, lambda key, at: NodeLoad(key, at % 5)),
        (NodeReputation, versions // 2, lambda key, at: NodeReputation(key, at, at, 0, at * 10**18, at * 10**20)),
        (
            Service, versions // 4,
            lambda key, at: Service(key, key, category_id, CATEGORY, 1000 + at % 300, "ipfs://meta", active=True),
        ),
    ]  # fmt: skip


def starts(draw: random.Random, blocks: int, versions: int) -> list[int]:
    """Blocks in which the versions of a key begin."""
    return [FIRST, *sorted(draw.sample(range(FIRST + 1, blocks + 1), min(versions, blocks - FIRST) - 1))]


def version_rows(change: Changes, services: int, blocks: int, seed: int) -> Iterator[tuple[object, ...]]:
    """Every version of a table, one key after another; key 1 changes in every block."""
    row_type, versions, row_of = change
    draw = random.Random(f"{seed} {row_type.TABLE}")
    for key in range(1, services + 1):
        every_block = key == 1 and row_type is NodeLoad
        begin = starts(draw, blocks, blocks if every_block else max(2, versions))
        for start, end in zip(begin, [*begin[1:], None], strict=True):
            yield start, end, *values_of(row_of(key, start))


def fill(store: Store, services: int, versions: int, blocks: int, seed: int) -> int:
    """Write the index; gives how many versions it holds."""
    count = 0
    for change in changes(versions):
        columns = ("valid_from", "valid_to", *columns_of(change[0]))
        for some in _batches(version_rows(change, services, blocks, seed)):
            with store.write() as connection:
                insert_rows(connection, table_of(change[0]), columns, some)
            count += len(some)
    _fill_the_index_itself(store, blocks)
    return count


def _batches(values: Iterator[tuple[object, ...]]) -> Iterator[list[tuple[object, ...]]]:
    batch = []
    for value in values:
        batch.append(value)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch
            batch = []
    yield batch


def _fill_the_index_itself(store: Store, blocks: int) -> None:
    def block_hash(number: int) -> str:
        return f"0x{number:064x}"

    numbers = range(1, blocks + 1)
    headers = [(number, block_hash(number), block_hash(number - 1), number, block_hash(0)) for number in numbers]
    rules = [(1, 0, "NodeRegistry", "min_stake", "1000"), (1, 0, "NodeRegistry", "stake_per_slot", "500")]
    tables = [
        ("block", ("number", "hash", "parent_hash", "timestamp", "digest"), headers),
        ("cursor", ("id", "number", "hash"), [(1, blocks, block_hash(blocks))]),
        ("meta", ("name", "value"), [("chain_id", "1"), ("genesis_hash", block_hash(0)), ("first_block", "1")]),
        ("parameter", ("valid_from", "log_index", "contract", "name", "value"), rules),
    ]
    with store.write() as connection:
        for name, columns, values in tables:
            insert_rows(connection, METADATA.tables[name], columns, values)


def questions(services: int) -> dict[str, Callable[[Store, int | None], object]]:
    """What is asked; the second argument is the block, None for the head."""
    return {
        f"candidates, {services:,} services": lambda store, at: query.candidates(store, CATEGORY, at),
        "services, a page of 100": lambda store, at: query.services(store, after=services // 2, at=at),
        "nodes, a page of 100": lambda store, at: query.nodes(store, after=services // 2, at=at),
        "service": lambda store, at: query.service(store, services // 2, at),
        "node with a version in every block": lambda store, at: query.node(store, 1, at),
    }


def measured(store: Store, ask: Callable[[Store, int | None], object], blocks: Sequence[int | None]) -> list[float]:
    """Seconds of each question, in ascending order."""
    taken = []
    for at in (*blocks[:5], *blocks):
        started = time.perf_counter()
        ask(store, at)
        taken.append(time.perf_counter() - started)
    return sorted(taken[5:])  # the first ones warm the caches


def report(store: Store, services: int, blocks: int, runs: int, seed: int) -> None:
    """Ask, and print a line for each question at the head and at blocks drawn from all."""
    draw = random.Random(seed)
    for name, ask in questions(services).items():
        for when, asked in (("head", [None] * runs), ("any block", [draw.randint(FIRST, blocks) for _ in range(runs)])):
            taken = measured(store, ask, asked)
            p50, p99 = (taken[min(runs - 1, runs * percent // 100)] * 1e3 for percent in (50, 99))
            print(f"{name:36} {when:10} {store.engine.dialect.name:12} {p50:9.2f} {p99:9.2f}")


def main() -> None:
    """Read the options, and measure both databases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=1_000)
    parser.add_argument("--versions", type=int, default=300, help="versions of a node's load; of the rest fewer")
    parser.add_argument("--blocks", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=200, help="questions of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", nargs="+", choices=("sqlite", "postgresql"), default=["sqlite", "postgresql"])
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.blocks:,} blocks, {options.runs} questions of each kind; milliseconds\n")
    print(f"{'question':36} {'as of':10} {'database':12} {'p50':>9} {'p99':>9}")
    for kind in options.stores:
        with (
            tempfile.TemporaryDirectory(prefix="counterfoil-") as folder,
            databases(kind, Path(folder)) as new,
            open_locked(new()) as store,
        ):
            started = time.perf_counter()
            count = fill(store, options.services, options.versions, options.blocks, options.seed)
            _settle(store)
            seconds = time.perf_counter() - started
            report(store, options.services, options.blocks, options.runs, options.seed)
            print(f"({count:,} versions written in {seconds:.1f} s, their statistics included)\n")


def _settle(store: Store) -> None:
    """Let PostgreSQL know its tables, as its autovacuum does after a while."""
    if store.engine.dialect.name == "postgresql":
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")


if __name__ == "__main__":
    main()
