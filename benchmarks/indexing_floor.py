"""The floor of one process: the least that any indexer in Python does with these events, each part alone.

Transfer with JSON, decoding, and inserting are each done by the fastest means that we know, without a check, without
a fold, and without looking at anything that is already stored.
"""

import http.client
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson
from psycopg import sql
from sqlalchemy.dialects import postgresql

from benchmarks.indexing_chain import TradedChain
from indexer.decode import LogDecoder
from indexer.store.bulk import type_name
from indexer.store.database import Store
from indexer.store.tables import METADATA

BLOCKS_AN_ANSWER = 15
"""About 1,600 logs: anvil gives most logs a second at 500 to 2,000 an answer."""

Rows = dict[str, list[tuple[Any, ...]]]
"""Rows by table."""


def transfer(chain: TradedChain) -> list[dict[str, Any]]:
    """Read all logs by a bare HTTP client, and parse their JSON."""
    address = urlsplit(chain.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    contracts = list(chain.deployment.addresses().values())
    logs: list[dict[str, Any]] = []
    for first in range(0, chain.head + 1, BLOCKS_AN_ANSWER):
        last = min(chain.head, first + BLOCKS_AN_ANSWER - 1)
        wanted = {"address": contracts, "fromBlock": hex(first), "toBlock": hex(last)}
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [wanted]})
        connection.request("POST", "/", body, {"Content-Type": "application/json"})
        logs += orjson.loads(connection.getresponse().read())["result"]
    connection.close()
    return logs


def decode(chain: TradedChain, logs: Sequence[tuple[str, tuple[str, ...], str]]) -> None:
    """Decode logs, given as address, topics and data, and forget the events."""
    decoder = LogDecoder(chain.deployment.addresses())
    for address, topics, data in logs:
        decoder.decode(address, topics, data)


def stored_rows(store: Store) -> Rows:
    """Take all rows out of a filled index, as its driver wants them."""
    with store.read() as connection:
        return {
            name: [tuple(map(_plain, row)) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")]
            for name in METADATA.tables
        }


def insert(store: Store, rows: Rows) -> None:
    """Put rows into an empty index, by the driver's own bulk statement, in one transaction."""
    fill = _insert_sqlite if store.engine.dialect.name == "sqlite" else _copy
    connection = store.engine.raw_connection()
    try:
        driver: Any = connection.driver_connection
        fill(driver, {name: some for name, some in rows.items() if some and name != "meta"})
        driver.commit()
    finally:
        connection.close()


def _plain(value: object) -> object:
    return int(value) if type(value).__name__ == "Decimal" else value  # type: ignore[call-overload]


def _insert_sqlite(driver: sqlite3.Connection, rows: Rows) -> None:
    driver.execute("BEGIN")
    for name, some in rows.items():
        marks = ",".join("?" * len(some[0]))
        driver.executemany(f"INSERT INTO {name} VALUES ({marks})", some)


def _copy(driver: Any, rows: Rows) -> None:  # noqa: ANN401 - psycopg's connection
    with driver.cursor() as cursor:
        for name, some in rows.items():
            kinds = [type_name(column.type, postgresql.dialect()) for column in METADATA.tables[name].columns]  # type: ignore[no-untyped-call]
            statement = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(name))
            with cursor.copy(statement) as copy:
                copy.set_types(kinds)
                for row in some:
                    copy.write_row(row)


def pieces(logs: Sequence[dict[str, Any]]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Give what decoding needs of each log."""
    return ((log["address"], tuple(log["topics"]), log["data"]) for log in logs)
