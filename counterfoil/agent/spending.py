"""What an agent may spend, and the book of what it did: written before anything is signed.

Caps are hard. They hold for every wallet and process that uses the book, whatever the lottery's guard relaxed. What is
reserved counts in full until its session is settled, and then as what was paid; credit that comes back raises no cap.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Final

from counterfoil.agent.local_database import LocalDatabase
from indexer.errors import UserError

AMOUNT_LIMIT: Final = 2**128
"""Prices and deposits are below it, as on chain."""

_VERSION = 1
# Amounts can pass 64 bits: they are kept as text and added up outside of SQL.
_SCHEMA = """
create table reservation (
    reservation_id text primary key, run_id text not null, operator text not null, day text not null,
    price_per_call text not null, calls integer not null, deposit text not null,
    state text not null check (state in ('reserved', 'settled', 'released')), paid text not null
) strict;
create index by_run on reservation (run_id);
create index by_day on reservation (day, operator)
"""
_RESERVED, _SETTLED, _RELEASED = "reserved", "settled", "released"


class OverPolicyError(UserError):
    """A session that a cap forbids; the message names the cap, what stands against it, and by how much it is passed."""


class BookError(UserError):
    """A reservation that is unknown, or that already ended otherwise."""


@dataclass(frozen=True, slots=True)
class SpendPolicy:
    """Hard caps in base units, None for none: of one call's price, of a run, of a UTC day, and of an operator a day."""

    per_call: int | None = None
    per_run: int | None = None
    per_day: int | None = None
    per_operator: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a cap below 0."""
        if any(cap is not None and cap < 0 for cap in (self.per_call, self.per_run, self.per_day, self.per_operator)):
            raise ValueError("a cap is at least 0")


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a session is about to take: `deposit` and `price_per_call` in base units, `day` the UTC date it is of.

    `reservation_id` is the session's id, or that of the intent to open one; it is used once.
    """

    reservation_id: str
    run_id: str
    operator: str
    price_per_call: int
    calls: int
    deposit: int
    day: date

    def __post_init__(self) -> None:
        """Raise ValueError for amounts out of range, a time in the place of a day, and empty ids."""
        if not (self.reservation_id and self.run_id and self.operator):
            raise ValueError("a reservation names itself, its run and its operator")
        if not (0 <= self.price_per_call < AMOUNT_LIMIT and 0 <= self.deposit < AMOUNT_LIMIT):
            raise ValueError("an amount is from 0 to below 2^128")
        if not 0 <= self.calls < 2**32:
            raise ValueError("calls are from 0 to below 2^32")
        if isinstance(self.day, datetime):
            raise ValueError("a day is a date without a time")  # noqa: TRY004


@dataclass(frozen=True, slots=True)
class Spent:
    """Base units that are paid, and those that open sessions may still take."""

    paid: int
    reserved: int

    @property
    def total(self) -> int:
        """What counts against a cap."""
        return self.paid + self.reserved


class SpendBook:
    """Every reservation, in a SQLite file. Raises UserError for a file that cannot be used: then nothing is spent."""

    def __init__(self, path: Path) -> None:
        self.database = LocalDatabase(path, _SCHEMA, _VERSION)

    def reserve(self, policy: SpendPolicy, reservation: Reservation) -> None:
        """Write a reservation down, durably, before its session is signed.

        Once more with the same terms changes nothing. Raises OverPolicyError, and BookError for an id that ended or
        stands with other terms.
        """
        with self.database.writing() as connection:
            if not _stands(connection, reservation):
                _check(connection, policy, reservation)
                values = (*_terms(reservation), _RESERVED, "0")
                connection.execute("insert into reservation values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def settled(self, reservation_id: str, paid: int) -> None:
        """Count what a session paid, in base units, in the place of its deposit.

        A reservation that was released counts again: what was paid was paid. Raises BookError for an unknown one, for
        one that was settled at another amount, and for more than its deposit.
        """
        with self.database.writing() as connection:
            state, before, deposit = _row(connection, reservation_id)
            if state == _SETTLED and before != paid:
                raise BookError(f"The reservation {reservation_id} is settled at {before} base units, not {paid}.")
            if not 0 <= paid <= deposit:
                raise BookError(
                    f"The reservation {reservation_id} is of {deposit} base units, so that {paid} cannot be paid of it:"
                    " check the session on chain."
                )
            _end(connection, reservation_id, _SETTLED, paid)

    def reopened(self, reservation_id: str) -> None:
        """Count a deposit in full again: a reorg undid how its session ended. Raises BookError for an unknown one."""
        with self.database.writing() as connection:
            _row(connection, reservation_id)
            _end(connection, reservation_id, _RESERVED, 0)

    def released(self, reservation_id: str) -> None:
        """Let a reservation go of which no session was opened. Raises BookError for an unknown or settled one."""
        with self.database.writing() as connection:
            state, paid, _ = _row(connection, reservation_id)
            if state == _SETTLED:
                raise BookError(f"The reservation {reservation_id} is settled at {paid} base units: it stands.")
            _end(connection, reservation_id, _RELEASED, 0)

    def spent(self, *, run_id: str | None = None, day: date | None = None, operator: str | None = None) -> Spent:
        """Add up what counts of a run, a day, an operator, or what is of all of those that are given."""
        with self.database.reading() as connection:
            return _spent(connection, _scope(run_id, day, operator))


def check(policy: SpendPolicy, book: SpendBook, wanted: Reservation, before: Sequence[Reservation] = ()) -> None:
    """Raise what `book.reserve` would raise once those `before` are reserved, and write nothing."""
    with book.database.reading() as connection:
        if connection is None or not _stands(connection, wanted):
            _check(connection, policy, wanted, before)


# --- caps


def _check(
    connection: sqlite3.Connection | None,
    policy: SpendPolicy,
    wanted: Reservation,
    before: Sequence[Reservation] = (),
) -> None:
    if policy.per_call is not None and wanted.price_per_call > policy.per_call:
        raise OverPolicyError(
            f"A call costs {wanted.price_per_call} base units, {wanted.price_per_call - policy.per_call} more than the "
            f"cap per call of {policy.per_call}: raise that cap, or choose a cheaper service."
        )
    for name, cap, scope in _scopes(policy, wanted):
        spent = _spent(connection, scope)
        spent = replace(spent, reserved=spent.reserved + sum(one.deposit for one in before if _is_of(one, scope)))
        over = spent.total + wanted.deposit - cap
        if over > 0:
            raise OverPolicyError(
                f"The deposit of {wanted.deposit} base units passes the cap {name} of {cap} by {over}: {spent.paid} are"
                f" spent and {spent.reserved} reserved. Raise that cap, or ask for less."
            )


def _scopes(policy: SpendPolicy, wanted: Reservation) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Give each cap that is set on a sum, its name, and what it is the sum of."""
    if policy.per_run is not None:
        yield "per run", policy.per_run, _scope(run_id=wanted.run_id)
    if policy.per_day is not None:
        yield f"per day ({wanted.day.isoformat()})", policy.per_day, _scope(day=wanted.day)
    if policy.per_operator is not None:
        scope = _scope(day=wanted.day, operator=wanted.operator)
        yield f"per operator and day ({wanted.operator.lower()})", policy.per_operator, scope


# --- rows


def _terms(reservation: Reservation) -> tuple[str | int, ...]:
    return (
        reservation.reservation_id,
        reservation.run_id,
        reservation.operator.lower(),
        reservation.day.isoformat(),
        str(reservation.price_per_call),
        reservation.calls,
        str(reservation.deposit),
    )


def _stands(connection: sqlite3.Connection, reservation: Reservation) -> bool:
    """Whether exactly this is reserved. Raises BookError where the id stands for something else."""
    row = connection.execute(
        "select * from reservation where reservation_id = ?", (reservation.reservation_id,)
    ).fetchone()
    if row is None:
        return False
    *terms, state, _ = row
    if state != _RESERVED:
        raise BookError(f"The reservation {reservation.reservation_id} was {state} already: take a new id.")
    if tuple(terms) != _terms(reservation):
        raise BookError(f"The reservation {reservation.reservation_id} stands with other terms: take a new id.")
    return True


def _row(connection: sqlite3.Connection, reservation_id: str) -> tuple[str, int, int]:
    """Give a reservation's state, what it paid, and its deposit."""
    row = connection.execute(
        "select state, paid, deposit from reservation where reservation_id = ?", (reservation_id,)
    ).fetchone()
    if row is None:
        raise BookError(f"There is no reservation {reservation_id} in the book: check that it is the right file.")
    return row[0], int(row[1]), int(row[2])


def _end(connection: sqlite3.Connection, reservation_id: str, state: str, paid: int) -> None:
    connection.execute(
        "update reservation set state = ?, paid = ? where reservation_id = ?", (state, str(paid), reservation_id)
    )


def _scope(run_id: str | None = None, day: date | None = None, operator: str | None = None) -> dict[str, str]:
    """Give the columns that a sum is narrowed to, with their values."""
    values = {
        "run_id": run_id,
        "day": None if day is None else day.isoformat(),
        "operator": None if operator is None else operator.lower(),
    }
    return {column: value for column, value in values.items() if value is not None}


def _is_of(reservation: Reservation, scope: dict[str, str]) -> bool:
    of = _scope(reservation.run_id, reservation.day, reservation.operator)
    return scope.items() <= of.items()


def _spent(connection: sqlite3.Connection | None, scope: dict[str, str]) -> Spent:
    if connection is None:
        return Spent(0, 0)
    where = " and ".join(f"{column} = :{column}" for column in scope) or "true"
    paid = reserved = 0
    query = f"select state, paid, deposit from reservation where {where}"  # noqa: S608 -- columns are our own words
    for state, done, deposit in connection.execute(query, scope):
        paid += int(done)
        reserved += int(deposit) if state == _RESERVED else 0
    return Spent(paid, reserved)
