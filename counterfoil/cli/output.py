"""Printing: tables that fit 100 columns, JSON, and texts from the chain made harmless."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from counterfoil.answers import Answer
from counterfoil.texts import printable

WIDTH = 100


def console(*, err: bool = False) -> Console:
    """A console of at most 100 columns; off a terminal exactly 100 and without colour."""
    made = Console(stderr=err, highlight=False, emoji=False, markup=False)
    if not made.is_terminal or made.width > WIDTH:
        made.width = WIDTH
    return made


def print_json(document: object) -> None:
    """Print JSON with sorted names."""
    click.echo(json.dumps(document, indent=2, sort_keys=True))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print a table; a column whose name starts with `>` stands to the right."""
    table = Table(header_style="bold", box=None, pad_edge=False)
    for name in columns:
        right = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    # Not the table's own title: that would be wrapped to the table's width.
    _print_trimmed(*([] if title is None else [Text(title, style="bold")]), table)


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names with their values below each other."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(plain(name), plain(value))
    _print_trimmed(table)


def say(sentence: str) -> None:
    """Print a sentence, made harmless, in lines of at most 100 columns."""
    _print_trimmed(plain(sentence))


def _print_trimmed(*parts: Table | Text) -> None:
    # rich leaves blanks after the last column and where it breaks a line; nobody wants to copy those.
    screen = console()
    with screen.capture() as captured:
        for part in parts:
            screen.print(part)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_as_of(answer: Answer) -> None:
    """Say which block an answer is the state after."""
    as_of = answer["as_of"]
    final = ", final" if as_of["finalized"] else ""
    behind = f", {as_of['behind']} blocks still to be indexed" if as_of["behind"] else ""
    say(f"as of block {as_of['block']} ({short(as_of['hash'])}{final}) of chain {as_of['chain_id']}{behind}")


def print_next(after: int | None) -> None:
    """Say how to see the next page, where there is one."""
    if after is not None:
        click.echo(f"more with --after {after}")


def plain(value: object) -> Text:
    """Text that no terminal takes for a command: names and URLs from the chain may hold anything."""
    return Text("-" if value is None else printable(str(value)))


def short(text: str) -> str:
    """The start of an id or address, enough to type as a prefix."""
    return text if len(text) <= 14 else f"{text[:12]}…"


def amount(number: int | str) -> str:
    """An amount in base units, digits in groups of three."""
    return f"{int(number):,}"


def moment(seconds: int) -> str:
    """A block's time as `2026-01-31 12:00:00 UTC`; one that no calendar has stays a number."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"


def rating(rating_sum: int, rating_count: int) -> str:
    """A mean score with its count, as `92.5 (4)`; an unrated one says so."""
    if rating_count == 0:
        return "unrated"
    tenths = rating_sum * 10 // rating_count
    return f"{tenths // 10}.{tenths % 10} ({rating_count})"
