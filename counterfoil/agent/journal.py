"""What an agent has begun, in a SQLite file: written before it is done, so that a restart goes on where a kill was."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from counterfoil.agent.local_database import LocalDatabase
from indexer.errors import UserError

_VERSION: Final = 1
_SCHEMA: Final = """
create table run (
    run_id text primary key, client text not null, workflow text not null, status text not null, reason text not null,
    started text not null, ended text not null) strict;
create table step (
    run_id text not null, step_id text not null, status text not null, found_by text not null, category text not null,
    input text not null, output text not null, reason text not null, primary key (run_id, step_id)) strict;
create table session (
    reservation_id text primary key, run_id text not null, step_id text not null, position integer not null,
    client text not null, category text not null, service_id integer not null, operator text not null,
    endpoint text not null, price text not null, deposit text not null, attempt integer not null,
    decision text not null, nonce integer not null, sent_by text not null,
    account_nonce integer not null, tx_hash text not null, raw blob not null, session_id text not null,
    state text not null, paid text not null, failure text not null, score integer, why text not null,
    seen_in integer not null, seen_hash text not null) strict;
create index session_by_seen on session (client, seen_in);
create index session_by_transaction on session (tx_hash);
create index session_of_step on session (run_id, step_id, position);
create table call (
    reservation_id text not null, calls integer not null, item integer not null, amount text not null,
    request text not null, outcome text not null, status integer not null, output text not null,
    latency_ms integer not null, judge_score integer, reason text not null,
    primary key (reservation_id, calls)) strict
"""
State = TypeVar("State")


class BusyRunError(UserError):
    """A run that another process drives."""


class SessionState(StrEnum):
    """How far an agent is with a session."""

    RESERVED = "reserved"  # about to be signed
    INTENDED = "intended"  # signed, and perhaps sent
    OPEN = "open"  # on chain; calls are made
    CALLED = "called"  # no call is to come
    CLOSING = "closing"  # the node did not settle: the challenge period runs
    DONE = "done"  # settled, rated and attested
    VOID = "void"  # the chain never took it, or a reorg took it away


UNDER_WAY: Final = frozenset({SessionState.INTENDED, SessionState.OPEN, SessionState.CALLED})
"""How far a session is that has to be driven on."""


class Outcome(StrEnum):
    """How a call ended; PENDING is that of one that was begun."""

    PENDING = "pending"
    WORKED = "worked"
    FAILED = "failed"
    OWN_FAULT = "own_fault"


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run: its workflow as YAML, `status` running, done or failed, times as ISO 8601 (UTC)."""

    run_id: str
    client: str
    workflow: str
    status: str
    reason: str
    started: str
    ended: str = ""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of a run; `input` and `output` are JSON values, None until they are there."""

    run_id: str
    step_id: str
    status: str
    found_by: str = ""
    category: str = ""
    input: Any = None
    output: Any = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session of a step, with the transaction that opens it: `raw`, signed by `sent_by`. Amounts are base units.

    `seen_in` is a block by which it was on chain, as it is said here; `seen_hash` is that block's, once all is done.
    """

    reservation_id: str
    run_id: str
    step_id: str
    position: int
    client: str
    category: str
    service_id: int
    operator: str
    endpoint: str
    price: int
    deposit: int
    attempt: int
    decision: str
    nonce: int
    sent_by: str = ""
    account_nonce: int = 0
    tx_hash: str = ""
    raw: bytes = b""
    session_id: str = ""
    state: SessionState = SessionState.RESERVED
    paid: int = 0
    failure: str = ""
    score: int | None = None
    why: str = ""
    seen_in: int = 0
    seen_hash: str = ""


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call of a session: the `item` of its step that it serves, `amount` of its voucher, and what came of it."""

    reservation_id: str
    calls: int
    item: int
    amount: int
    request: Mapping[str, Any]
    outcome: Outcome = Outcome.PENDING
    status: int = 0
    output: Any = None
    latency_ms: int = 0
    judge_score: int | None = None
    reason: str = ""


_JSON: Final = frozenset({"input", "output", "request"})
_AMOUNTS: Final = frozenset({"price", "deposit", "paid", "amount"})
_ENUMS: Final = {"state": SessionState, "outcome": Outcome}
_TABLES: Final[Mapping[type, str]] = {RunRow: "run", StepRow: "step", SessionRow: "session", CallRow: "call"}


class Journal:
    """One file for all wallets of a home. Every write is on the disk when it returns; threads may share one."""

    def __init__(self, path: Path) -> None:
        self._database = LocalDatabase(path, _SCHEMA, _VERSION)

    def put(self, row: RunRow | StepRow | SessionRow | CallRow) -> None:
        """Write a row, in the place of the one with its key."""
        values = {name: _plain(name, value) for name, value in asdict(row).items()}
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        # Not `replace`, which would give the row a new place in the order.
        renewed = ", ".join(f"{name} = excluded.{name}" for name in values)
        with self._database.writing() as connection:
            connection.execute(
                f"insert into {_TABLES[type(row)]} ({names}) values ({marks}) on conflict do update set {renewed}",  # noqa: S608 - our own names
                tuple(values.values()),
            )

    @contextmanager
    def holding(self, run_id: str) -> Iterator[None]:
        """Keep other processes from driving a run. Raises BusyRunError where one does."""
        path = self._database.path.with_name(f"{run_id}.lock")
        with path.open("w") as file:
            busy = BusyRunError(f"Run {run_id} is being made by another process: wait for it.")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise busy from None
            if not _is_at(file.fileno(), path):  # whoever had it took the file away
                raise busy
            try:
                yield
            finally:
                path.unlink(missing_ok=True)

    def run(self, run_id: str) -> RunRow | None:
        """Give a run."""
        return next(iter(self._rows(RunRow, "where run_id = ?", run_id)), None)

    def runs(self, limit: int) -> list[RunRow]:
        """Give the latest runs, the newest first."""
        return self._rows(RunRow, "order by started desc, run_id limit ?", limit)

    def unfinished(self, client: str) -> list[RunRow]:
        """Give a wallet's runs that have not ended, the oldest first."""
        return self._rows(RunRow, "where client = ? and status = 'running' order by started, run_id", client)

    def step(self, run_id: str, step_id: str) -> StepRow | None:
        """Give a step that was begun."""
        return next(iter(self._rows(StepRow, "where run_id = ? and step_id = ?", run_id, step_id)), None)

    def steps(self, run_id: str) -> list[StepRow]:
        """Give the steps of a run that were begun, in the order of their beginning."""
        return self._rows(StepRow, "where run_id = ? order by rowid", run_id)

    def sessions(self, run_id: str, step_id: str | None = None) -> list[SessionRow]:
        """Give the sessions of a run or of one of its steps, in the order of their opening."""
        if step_id is None:
            return self._rows(SessionRow, "where run_id = ? order by rowid", run_id)
        return self._rows(SessionRow, "where run_id = ? and step_id = ? order by position", run_id, step_id)

    def session(self, reservation_id: str) -> SessionRow | None:
        """Give a session by the id of its reservation."""
        return next(iter(self._rows(SessionRow, "where reservation_id = ?", reservation_id)), None)

    def closing(self, client: str) -> list[SessionRow]:
        """Give a wallet's sessions whose challenge period runs or has passed."""
        return self._rows(SessionRow, "where client = ? and state = 'closing' order by rowid", client)

    def left(self, client: str) -> list[SessionRow]:
        """Give a wallet's sessions that are under way although their runs ended: a kill came as one was concluded."""
        where = (
            "where client = ? and state in ('intended', 'open', 'called') and run_id in "
            "(select run_id from run where status != 'running') order by rowid"
        )
        return self._rows(SessionRow, where, client)

    def done(self, client: str, limit: int) -> list[SessionRow]:
        """Give a wallet's sessions that are done, the latest end first."""
        return self._rows(
            SessionRow, "where client = ? and state = 'done' order by seen_in desc limit ?", client, limit
        )

    def is_signed(self, transaction: str) -> bool:
        """Whether a transaction opens a session that is in the journal."""
        return bool(self._rows(SessionRow, "where tx_hash = ?", transaction))

    def last_decision(self, client: str) -> str | None:
        """Give the digest of a wallet's latest receipt."""
        found = self._rows(SessionRow, "where client = ? and state != 'void' order by rowid desc limit 1", client)
        return found[0].decision if found else None

    def calls(self, reservation_id: str) -> list[CallRow]:
        """Give the calls of a session, in their order."""
        return self._rows(CallRow, "where reservation_id = ? order by calls", reservation_id)

    def _rows(self, kind: type[State], where: str, *arguments: object) -> list[State]:
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        asked = f"select {', '.join(names)} from {_TABLES[kind]} {where}"  # noqa: S608 - our own names
        with self._database.reading() as connection:
            found = connection.execute(asked, arguments).fetchall() if connection else ()
        return [kind(**{name: _read(name, value) for name, value in zip(names, row, strict=True)}) for row in found]


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _plain(name: str, value: Any) -> Any:  # noqa: ANN401
    if name in _JSON:
        return json.dumps(value)
    return str(value) if name in _AMOUNTS else value


def _read(name: str, value: Any) -> Any:  # noqa: ANN401
    if name in _JSON:
        return json.loads(value)
    if name in _AMOUNTS:
        return int(value)
    return _ENUMS[name](value) if name in _ENUMS else value
