"""How fast the directory answers: `python benchmarks/directory.py` prints `/services/best` and `/services` under load.

An index of 10,000 listings and 1,000,000 records is served by the real `counterfoil serve`; 50 clients in another
process ask it. Beside each question stand a constant of the same size from the same server, `/health`, and the bare SQL
that answers it. Each figure is the best of some rounds, in which the compared ones take turns.
"""

import argparse
import http.client
import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path[:1]:
    sys.path.insert(0, str(ROOT))  # run by its path, Python looks beside this file only

from benchmarks import constant  # noqa: E402
from benchmarks.directory_index import (  # noqa: E402
    Size,
    append_record,
    categories,
    fill,
    replace_newest_block,
    sample_record,
    tasks_of,
)
from benchmarks.load import Load, load  # noqa: E402
from indexer.query import category_id  # noqa: E402
from indexer.store.database import open_locked  # noqa: E402

SERVE = ("-c", "from counterfoil.cli.main import main; main()", "serve")
START_SECONDS = 600
QUESTIONS = 1_000
NEW_QUESTIONS = 20_000
APPENDED = 7
BEST_SQL = (
    "SELECT service_id, tool, count(*), sum(worked), avg(nullif(judge_score, 255)), avg(latency_ms), sum(calls) "
    "FROM experience WHERE need = ? GROUP BY service_id, tool"
)
LIST_SQL = (
    "SELECT * FROM service JOIN node USING (node_id) JOIN node_stake USING (node_id) JOIN node_load USING (node_id) "
    "LEFT JOIN node_reputation USING (node_id) WHERE service.valid_to IS NULL AND node.valid_to IS NULL "
    "AND node_stake.valid_to IS NULL AND node_load.valid_to IS NULL AND node_reputation.valid_to IS NULL "
    "AND service.service_id > ? AND (? IS NULL OR category_id = ?) ORDER BY service.service_id LIMIT 100"
)


class Server(NamedTuple):
    """A server of this machine; `seconds` from its start to its first answer."""

    port: int
    process: subprocess.Popen[bytes]
    seconds: float

    def memory(self) -> float:
        """Resident MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) / 1024


class Question(NamedTuple):
    """What is asked: the paths of a round, and the bare SQL that answers one of them."""

    name: str
    paths: Callable[[int], list[str]]
    sql: Callable[[sqlite3.Connection, int], object]


class Asked(NamedTuple):
    """What one question costs, beside a constant of its size and /health."""

    question: Load
    constant: Load
    health: Load


# --- servers


@contextmanager
def running(arguments: Callable[[int], Sequence[str]], path: str) -> Iterator[Server]:
    """Run a Python program that serves on the port that it is given, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, *arguments(port)], env=environment) as process:
        try:
            _wait(port, path, process)
            yield Server(port, process, time.perf_counter() - started)
        finally:
            process.terminate()


def _wait(port: int, path: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            ask(port, path)
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("the server did not start")


def serving(database: Path) -> AbstractContextManager[Server]:
    """The real server over an index."""
    return running(lambda port: (*SERVE, "--port", str(port), "--database", str(database)), "/services/best?need=x")


def constant_of(size: int) -> AbstractContextManager[Server]:
    """A server whose only answer has so many bytes."""
    return running(lambda port: (constant.__file__, str(port), str(size)), "/constant")


def ask(port: int, path: str) -> Mapping[str, Any]:
    """One answer; OSError where nobody is there."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)) as connection:
        connection.request("GET", path)
        body = connection.getresponse().read()
        return dict(json.loads(body)) if body.startswith(b"{") else {}


# --- questions


def questions(size: Size) -> list[Question]:
    """What is asked, each kind once as what others have asked since the last block, and once as what nobody has."""
    return [
        Question("best, 1,000 questions", lambda _: best_paths(size, QUESTIONS), sql_best),
        Question("best, each a new one", lambda turn: best_paths(size, NEW_QUESTIONS, f" x{turn}y"), sql_best),
        Question("services, all pages", lambda _: list_paths(size), sql_list),
        Question("services, each a new page", lambda turn: new_list_paths(size, turn), sql_list),
    ]


def best_paths(size: Size, count: int, unheard: str = "") -> list[str]:
    """Questions for tasks as agents put them, most with a need; with `unheard` each has a word that no other has."""
    draw, tasks = Random(f"{size.seed} questions"), {name: tasks_of(name, size.seed) for name in categories()}
    paths = []
    for number in range(count):
        need = draw.choice(categories())
        said = draw.choice(tasks[need]).split()
        task = " ".join(draw.sample(said, max(1, len(said) - draw.randrange(2)))) + (unheard and f"{unheard}{number}")
        asked = {"task": task, "need": need if draw.random() < 0.8 else "", "limit": draw.choice((5, 20, 20))}
        paths.append(f"/services/best?{urlencode(asked)}")
    return paths


def list_paths(size: Size) -> list[str]:
    """Every page of 100 of all listings, and the first one of each category."""
    pages = [{"after": after} for after in range(0, size.listings, 100)]
    of_one = [{"category": name} for name in categories()]
    return [f"/services?{urlencode(asked)}" for asked in [*pages, *of_one]]


def new_list_paths(size: Size, turn: int) -> list[str]:
    """Pages that begin at any listing and are of a length that no round had before."""
    return [f"/services?{urlencode({'after': after, 'limit': 100 + turn})}" for after in range(size.listings)]


def sql_best(database: sqlite3.Connection, turn: int) -> object:
    """Add up the records for a need."""
    return database.execute(BEST_SQL, (categories()[turn],)).fetchall()


def sql_list(database: sqlite3.Connection, turn: int) -> object:
    """Select a page of listings."""
    wanted = category_id(categories()[turn]) if turn % 2 else None
    return database.execute(LIST_SQL, (0, wanted, wanted)).fetchall()


# --- measuring


def measured(server: Server, question: Question, options: argparse.Namespace) -> Asked:
    """Ask in rounds, the compared ones in turns; the best of each."""
    before = load(server.port, question.paths(0), options.clients, options.seconds, at_least=QUESTIONS)
    size = int(before.size)  # by now all is remembered that can be

    def turn(number: int) -> Asked:
        return Asked(
            load(server.port, question.paths(number), options.clients, options.seconds),
            load(same.port, ["/constant"], options.clients, options.seconds),
            load(server.port, ["/health"], options.clients, options.seconds),
        )

    with constant_of(size) as same:
        found = [turn(number) for number in range(1, options.rounds + 1)]
    return Asked(*(max(of, key=lambda one: one.rate) for of in zip(*found, strict=True)))


def bare_sql(database: Path, question: Question) -> float:
    """Milliseconds of the SQL alone: the best of some runs."""
    taken = []
    with closing(sqlite3.connect(database)) as connection:
        for turn in range(5):
            started = time.perf_counter()
            question.sql(connection, turn)
            taken.append(1000 * (time.perf_counter() - started))
    return min(taken)


def until_shown(server: Server, database: Path, size: Size) -> tuple[list[float], list[float]]:
    """Milliseconds from a commit until an answer shows it: of a block with a new record, of a replaced block."""
    added, replaced = [], []
    with open_locked(database) as store:
        for turn in range(APPENDED):
            task = f"zebra{turn} crossing"
            path = f"/services/best?{urlencode({'task': task, 'need': 'geo:zebra', 'limit': 1})}"
            ask(server.port, path)
            record = replace(sample_record(size, turn), task=task, need="geo:zebra")
            append_record(store, record)
            added.append(_until(server.port, path, lambda answer, task=task: _label(answer) == task))
            block_hash = replace_newest_block(store, turn)
            replaced.append(_until(server.port, path, lambda answer, name=block_hash: answer["as_of"]["hash"] == name))
    return sorted(added), sorted(replaced)


def _label(answer: Mapping[str, Any]) -> str | None:
    match = answer["best"][0]["match"]
    return match and match["label"]


def _until(port: int, path: str, shows: Callable[[Mapping[str, Any]], bool]) -> float:
    started = time.perf_counter()
    while not shows(ask(port, path)):
        if time.perf_counter() - started > START_SECONDS:
            raise RuntimeError(f"{path} never showed a new block")
    return 1000 * (time.perf_counter() - started)


# --- the command


def report(server: Server, database: Path, size: Size, options: argparse.Namespace) -> None:
    """Ask everything and print the tables."""
    print(f"first read and start of the server: {server.seconds:.1f} s; its memory: {server.memory():,.0f} MiB\n")
    print(f"{'':26} {'p50 ms':>8} {'p99 ms':>8} {'answers/s':>10} {'KB':>6} {'clients busy':>13} {'SQL ms':>8}")
    ratios = []
    for question in questions(size):
        asked, sql = measured(server, question, options), bare_sql(database, question)
        _line(question.name, asked.question, f"{sql:8.1f}")
        _line("  a constant of its size", asked.constant)
        _line("  /health", asked.health)
        ratios.append((question.name, asked, sql))
    print(f"\n{'answers/s over those of':26} {'a constant':>12} {'/health':>12} {'SQL, one by one':>16}")
    for name, asked, sql in ratios:
        rate = asked.question.rate
        of_sql = rate * sql / 1000
        print(f"{name:26} {rate / asked.constant.rate:12.2f} {rate / asked.health.rate:12.2f} {of_sql:16,.1f}")
    added, replaced = until_shown(server, database, size)
    for what, taken in (("a new block's record shows in best", added), ("a replaced newest block shows", replaced)):
        print(f"\n{what} after {taken[len(taken) // 2]:.1f} ms, at most {taken[-1]:.1f} ms", end="")
    print(f"\nmemory of the server at the end: {server.memory():,.0f} MiB")


def _line(name: str, found: Load, more: str = "") -> None:
    print(
        f"{name:26} {found.p50:8.2f} {found.p99:8.2f} {found.rate:10,.0f} {found.size / 1000:6.1f} {found.busy:13.0%}"
        f" {more}",
        flush=True,
    )


def main() -> None:
    """Read the options, make the index, serve it, ask it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listings", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each thing is asked in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=Path, help="use the index in this file, made by an earlier run or by this one")
    options = parser.parse_args()
    size = Size(options.listings, options.records, options.seed)
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        database = options.index or Path(folder) / "index.sqlite"
        if not database.is_file():
            started = time.perf_counter()
            with open_locked(database) as store:
                fill(store, size)
            print(
                f"{size.listings:,} listings, {size.records:,} records: {time.perf_counter() - started:.0f} s to write"
            )
        with serving(database) as server:
            report(server, database, size, options)


if __name__ == "__main__":
    main()
