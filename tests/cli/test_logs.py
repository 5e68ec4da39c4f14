"""The log of a running index from the loop's notices."""

import ast
import json
from pathlib import Path

import pytest
import structlog

from counterfoil.cli import logs, progress
from indexer.chain import Header
from indexer.errors import LockedError, RateLimitedError
from indexer.notices import (
    Ended,
    Listening,
    ProviderChanged,
    Reading,
    Replaced,
    Retried,
    Stepped,
    Waiting,
    Weakened,
)
from indexer.store.reader import Cursor
from tests.support.clock import Clock

ROOT = Path(__file__).resolve().parents[2]


def stepped(block, head, outcome="advanced", blocks=0, counted=0):
    header = Header(head, "0x" + "aa" * 32, "0x" + "bb" * 32, 12 * head)
    return Stepped(outcome, header, Cursor(block, "0x" + "cc" * 32, None), None, blocks, counted, 0.0, 0.0)


def told(capsys, log_format, *notices):
    logs.configure(log_format)
    reporter = logs.Reporter()
    for notice in notices:
        reporter(notice)
    written = capsys.readouterr()
    assert written.out == ""
    return written.err.splitlines()


def events(capsys, *notices):
    return [json.loads(line) for line in told(capsys, "json", *notices)]


def bare(event):
    return {name: value for name, value in event.items() if name not in {"timestamp", "message", "level"}}


def test_reporter__of_a_retry_while_reading__binds_block_range_and_the_errors_class(capsys):
    found = events(
        capsys, stepped(40, 90), Reading(41, 90), Retried(RateLimitedError("Slow down."), 0.5), stepped(90, 90),
        Replaced(88, 2),
    )  # fmt: skip
    assert [bare(event) for event in found] == [
        {"event": "retrying", "block": 40, "head": 90, "range": [41, 90], "error": "RateLimitedError", "seconds": 0.5},
        {"event": "reorganised", "block": 90, "head": 90, "ancestor": 88, "depth": 2},
    ]
    assert [event["level"] for event in found] == ["warning", "warning"]
    assert found[0]["message"] == "Slow down. Trying again in 0.5 s."


def test_reporter__of_a_held_index__tells_of_the_change_alone(capsys):
    found = events(
        capsys, stepped(9, 9, "current"), stepped(9, 9, "current"), stepped(9, 7, "held"), stepped(9, 7, "held"),
        stepped(9, 9, "current"), stepped(9, 8, "held"),
    )  # fmt: skip
    assert [event["event"] for event in found] == ["caught_up", "held", "released", "held"]


def test_reporter__while_standing_by__tells_once_for_each_holder(capsys):
    waits = [Waiting(LockedError("x", holder)) for holder in ("", "", "process 1", "process 1", "process 2")]
    found = events(capsys, *waits)
    assert [event["holder"] for event in found] == ["the process that writes", "process 1", "process 2"]


def test_reporter__of_providers__tells_who_is_set_aside_and_who_is_back(capsys):
    found = events(
        capsys,
        ProviderChanged("http://a", "it lied."),
        ProviderChanged("http://a", None),
        Weakened("http://a", "no receipts"),
    )
    assert [bare(event) for event in found] == [
        {"event": "provider_set_aside", "provider": "http://a", "why": "it lied."},
        {"event": "provider_back", "provider": "http://a"},
        {"event": "weakened", "provider": "http://a", "why": "no receipts"},
    ]


def test_configure__as_text__prints_an_event_without_a_message_by_its_name_and_fields(capsys):
    logs.configure("text")
    structlog.get_logger().warning("call not served", status=502, reason="a\x1b[2J\nb")
    assert capsys.readouterr().err == "call not served status=502 reason=a\ufffd[2J\ufffdb\n"


def test_reporter__as_text__prints_harmless_sentences_alone(capsys):
    hostile = Retried(RateLimitedError("The node says \x1b[2J\nand {more}."), 1)
    assert told(capsys, "text", Listening("http://127.0.0.1:1"), hostile, Ended()) == [
        "Listening at http://127.0.0.1:1: /health, /ready, /status and /metrics.",
        "The node says \ufffd[2J\ufffdand {more}. Trying again in 1 s.",
    ]


def test_reporter__as_json__keeps_hostile_text_in_one_line(capsys):
    (event,) = events(capsys, Retried(RateLimitedError('The node says "\x1b[2J\n\u2028".'), 1))
    assert event["message"] == 'The node says "\x1b[2J\n\u2028". Trying again in 1 s.'


def test_operation_page__names_every_event():
    page = (ROOT / "docs" / "operation.md").read_text()
    named = set()
    for module in ("index", "logs", "progress"):
        for node in ast.walk(ast.parse((ROOT / "counterfoil" / "cli" / f"{module}.py").read_text())):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and node.func.attr in {"info", "warning", "error"}:
                named.add(node.args[0].value)
    assert len(named) > 10
    assert {name for name in named if f"`{name}`" not in page} == set()


# --- progress


@pytest.fixture
def clock():
    return Clock()


def test_pace__of_an_even_run__tells_logs_a_second_and_the_time_left(clock):
    pace = progress.Pace(clock)
    speed = None
    for turn in range(1, 12):
        speed = pace.take(stepped(1000 + 10 * turn, 2000, blocks=10, counted=70))
        clock.now += 1
    assert (speed.block, speed.head, speed.logs_per_second, speed.seconds_left) == (1110, 2000, 77, 81)


def test_pace__after_a_change_of_pace__forgets_the_old_one(clock):
    pace, block = progress.Pace(clock), 0
    for blocks in (1000,) * 30 + (10,) * 30:
        clock.now += 1
        block += blocks
        speed = pace.take(stepped(block, 31_300, blocks=blocks, counted=blocks))
    assert (speed.logs_per_second, speed.seconds_left) == (10, 100)


def test_pace__before_it_can_know__says_nothing_of_the_time_left(clock):
    assert progress.Pace(clock).take(stepped(5, 10, blocks=5, counted=1)).seconds_left is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (12_000, "3 h 20 min")]
)
def test_span__of_seconds__is_short(seconds, words):
    assert progress.span(seconds) == words


def test_lines__of_a_long_backfill__come_every_five_seconds_until_it_is_done(capsys, clock):
    logs.configure("text")
    observe = progress.lines(clock)
    for turn in range(1, 101):
        clock.now += 0.5
        observe(stepped(10 * turn, 1000, "advanced" if turn < 100 else "current", 10, 30))
    observe(Reading(1, 2))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 9
    assert lines[-1] == "Indexing: block 900 of 1,000 (90%), 60 logs/s, 5 s left."


def test_lines__of_an_index_that_follows__are_none(capsys, clock):
    logs.configure("text")
    observe = progress.lines(clock)
    for block in range(100):
        clock.now += 12
        observe(stepped(block, block, blocks=1))
        observe(stepped(block, block, "current"))
    assert capsys.readouterr().err == ""
