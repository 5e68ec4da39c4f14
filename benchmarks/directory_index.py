"""An index of a busy directory, its rows written straight into the tables: listings, sessions, and what agents found.

Listings belong to categories, a few of them are tried by most agents; labels are made of the words of their category,
as agents would put them. Everything is drawn from a seed.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from random import Random
from typing import NamedTuple

from indexer.query import Store, category_id
from indexer.rows import (
    OPEN,
    Experience,
    Node,
    NodeLoad,
    NodeReputation,
    NodeStake,
    Row,
    Service,
    Session,
    columns_of,
    values_of,
)
from indexer.store.bulk import insert_rows
from indexer.store.tables import METADATA, table_of

KINDS = ("data", "llm", "image", "web", "audio", "code", "geo", "legal")
THINGS = {
    "crypto": "bitcoin ethereum spot price usd eur token history order book volume",
    "weather": "weather forecast rain wind city hourly week storm warning coast",
    "text": "summary article translate german english tone mail draft grammar short",
    "pictures": "cartoon animation photo product portrait logo sketch background shot loop",
    "search": "search page news site result recent link crawl archive forum",
}  # fmt: skip
OPERATOR = "0x" + "0b" * 20
CLIENT = "0x" + "0c" * 20
NOTES = ("", "", "", "answers fast", "slow at noon, fine at night", "the unit is in the second field, not in the first",
         "fails on long input: split it", "asks for a city and takes a village too")  # fmt: skip
TOOLS_OF_A_SESSION = 4
RECORDS_OF_A_BLOCK = 100
TASKS_OF_A_CATEGORY = 60
MANY_AGENTS = 1.1
"""Listings by how often they are tried: the n-th as often as 1 / n to this power."""
_ROWS_AT_ONCE = 50_000


class Size(NamedTuple):
    """How much there is of what."""

    listings: int
    records: int
    seed: int = 1

    @property
    def head(self) -> int:
        """The newest block: everything is listed in the first one."""
        return 1 + -(-self.records // RECORDS_OF_A_BLOCK)


def categories() -> list[str]:
    """The categories of listings, which are the needs of records too."""
    return [f"{kind}:{thing}" for kind in KINDS for thing in THINGS]


def tasks_of(category: str, seed: int) -> list[str]:
    """The labels that agents give to jobs of a category: some of its words, and its kind."""
    kind, thing = category.split(":")
    draw, known = Random(f"{seed} {category}"), [kind, *THINGS[thing].split()]
    return sorted({" ".join(draw.sample(known, draw.randint(2, 5))) for _ in range(TASKS_OF_A_CATEGORY)})


def block_hash(number: int) -> str:
    """The hash of a block."""
    return f"0x{number:064x}"


def fill(store: Store, size: Size) -> None:
    """Write the index."""
    numbers = range(1, size.listings + 1)
    draw, offered = Random(size.seed), _offered(size)
    write(store, [Node(number, OPERATOR, f"https://node-{number}.example/v1") for number in numbers], 1)
    write(store, [NodeStake(number, draw.randrange(2_000, 90_000) * 1000, 0, 0) for number in numbers], 1)
    write(store, [NodeLoad(number, draw.randrange(20)) for number in numbers], 1)
    write(store, [_reputation(number, draw.randrange(40), draw) for number in numbers], 1)
    write(store, [_listing(number, offered[number - 1], draw) for number in numbers], 1)
    _fill_experience(store, size, offered)
    _fill_the_index_itself(store, size.head)


def write(store: Store, rows: Sequence[Row], block: int) -> None:
    """Write versioned rows that hold from a block on."""
    values = [(block, None, *values_of(row)) for row in rows]
    kind = type(rows[0])
    with store.write() as connection:
        insert_rows(connection, table_of(kind), ("valid_from", "valid_to", *columns_of(kind)), values)


def append_record(store: Store, found: Experience) -> int:
    """Write one more block, with one record of a new session, as the indexer does: at once. Gives its number."""
    with store.write() as connection:
        (before,) = connection.exec_driver_sql("SELECT number FROM cursor").one()
        number = before + 1
        session = (number, None, *values_of(session_of(10**9 + number, found.session_id, found.service_id, 1000)))
        insert_rows(connection, METADATA.tables["block"], _BLOCK, [_header(number)])
        insert_rows(connection, table_of(Session), _VERSION + columns_of(Session), [session])
        insert_rows(connection, table_of(Experience), _FACT + columns_of(Experience), [(number, 0, *values_of(found))])
        connection.exec_driver_sql("UPDATE cursor SET number = ?, hash = ?", (number, block_hash(number)))
    return number


def replace_newest_block(store: Store, turn: int) -> str:
    """Give the newest block another hash, as a reorg does that brings the same logs again. Gives the hash."""
    replaced = f"0x{turn + 1:02x}" + "ff" * 31
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE block SET hash = ? WHERE number = (SELECT number FROM cursor)", (replaced,))
        connection.exec_driver_sql("UPDATE cursor SET hash = ?", (replaced,))
    return replaced


def sample_record(size: Size, turn: int) -> Experience:
    """A record that no other session has."""
    draw = Random(f"{size.seed} sample {turn}")
    category = draw.choice(categories())
    number = size.records + 1 + turn + int(time.time())
    found = _record(number, turn, draw.randint(1, size.listings), category, tasks_of(category, size.seed), draw)
    return replace(found, worked=True)


_BLOCK = ("number", "hash", "parent_hash", "timestamp", "digest")
_VERSION = ("valid_from", "valid_to")
_FACT = ("valid_from", "log_index")


def _header(number: int) -> tuple[int, str, str, int, str]:
    return number, block_hash(number), block_hash(number - 1), 1_700_000_000 + 12 * number, block_hash(0)


def _offered(size: Size) -> list[str]:
    return Random(f"{size.seed} categories").choices(categories(), k=size.listings)


def _reputation(node_id: int, ratings: int, draw: Random) -> NodeReputation:
    total = sum(draw.randint(50, 100) for _ in range(ratings))
    return NodeReputation(node_id, total, ratings, 0, ratings * 1000, total * 1000)


def _listing(number: int, category: str, draw: Random) -> Service:
    price = draw.randrange(800, 1300)
    return Service(
        number, number, category_id(category), category, price, "ipfs://listing", active=draw.random() < 0.95
    )


def _fill_experience(store: Store, size: Size, offered: Sequence[str]) -> None:
    records = _records(size, offered)
    for first in range(0, size.records, _ROWS_AT_ONCE):
        some = list(islice(records, min(_ROWS_AT_ONCE, size.records - first)))
        facts = [(block, index, *values_of(found)) for block, index, found in some]
        opened = {found.session_id: (block, found.service_id) for block, _, found in reversed(some)}
        sessions = [
            (block, None, *values_of(session_of(_number(session_id), session_id, service_id, 1000)))
            for session_id, (block, service_id) in opened.items()
        ]
        with store.write() as connection:
            insert_rows(connection, table_of(Experience), _FACT + columns_of(Experience), facts)
            insert_rows(connection, table_of(Session), _VERSION + columns_of(Session), sessions)
        store.wrote(len(facts) + len(sessions))


def _number(session_id: str) -> int:
    return int(session_id, 16)


def _records(size: Size, offered: Sequence[str]) -> Iterator[tuple[int, int, Experience]]:
    """Records in the order of the chain, several tools to a session, with block and log index."""
    draw = Random(f"{size.seed} records")
    tasks = {category: tasks_of(category, size.seed) for category in categories()}
    tried = list(accumulate(1 / place**MANY_AGENTS for place in range(1, size.listings + 1)))
    popular = draw.sample(range(1, size.listings + 1), size.listings)
    for first in range(0, size.records, TOOLS_OF_A_SESSION):
        (service_id,) = draw.choices(popular, cum_weights=tried)
        category = offered[service_id - 1]
        own = tasks[category][service_id % 7 :: 7]  # what a listing is used for differs within a category
        for place in range(first, first + TOOLS_OF_A_SESSION):
            block, index = divmod(place, RECORDS_OF_A_BLOCK)
            yield block + 2, index, _record(1 + first // TOOLS_OF_A_SESSION, place, service_id, category, own, draw)


def _record(session: int, place: int, service_id: int, need: str, tasks: Sequence[str], draw: Random) -> Experience:
    if draw.random() < 0.1:  # an agent's need is not always the category that it found a listing in
        need = f"{draw.choice(KINDS)}:{need.partition(':')[2]}"
    worked = draw.random() < 0.6 + 0.4 * (service_id * 37 % 100) / 100
    calls = 1 + int(draw.random() * 6)
    return Experience(
        session_id=f"0x{session:064x}", tool=f"tool-{place % TOOLS_OF_A_SESSION}", service_id=service_id, need=need,
        task=tasks[int(draw.random() ** 2 * len(tasks))] if draw.random() < 0.9 else "", worked=worked, calls=calls,
        failures=0 if worked else 1, judge_score=draw.randint(30, 100) if draw.random() < 0.4 else 255,
        latency_ms=int(draw.lognormvariate(6 + service_id % 5 / 2, 0.6)), cost=1000 * calls if worked else 0,
        message="0x" + "00" * 32, note=draw.choice(NOTES),
    )  # fmt: skip


def session_of(number: int, session_id: str, service_id: int, price: int) -> Session:
    """An open session of a listing, which is its node's only one."""
    zero = block_hash(0)
    return Session(
        session_id, number, CLIENT, service_id, service_id, OPERATOR, OPERATOR, price, price, 10**6, 2 * 10**9, 1,
        number, 0, 1, zero, zero, 2**256 - 1, zero, 2, OPEN, 0, 0, 0, 0,
    )  # fmt: skip


def _fill_the_index_itself(store: Store, head: int) -> None:
    names = [("chain_id", "1"), ("genesis_hash", block_hash(0)), ("first_block", "1")]
    rules = [(1, 0, "NodeRegistry", "min_stake", "1000"), (1, 0, "NodeRegistry", "stake_per_slot", "500000")]
    tables = [
        ("block", _BLOCK, [_header(number) for number in range(1, head + 1)]),
        ("cursor", ("id", "number", "hash", "finalized"), [(1, head, block_hash(head), max(1, head - 64))]),
        ("meta", ("name", "value"), names),
        ("parameter", (*_FACT, "contract", "name", "value"), rules),
    ]
    with store.write() as connection:
        for name, columns, values in tables:
            insert_rows(connection, METADATA.tables[name], columns, values)
