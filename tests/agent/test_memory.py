"""What own runs learned ranks as the directory would rank the same records."""

import sqlite3
from contextlib import closing
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterfoil.agent.memory import Lesson, Memory
from counterfoil.routing.experience import sentence
from indexer.errors import UserError
from tests.directory.test_board import SERVICES, board_of, view
from tests.routing.test_experience import NEEDS, TASKS, records


def lesson(number=1, **changes):
    given_ = {
        "session_id": f"0x{number:064x}", "tool": "quote", "service_id": 1, "category": "data:crypto-price",
        "operator": "0x0a", "need": "data:crypto", "task": "bitcoin price", "worked": True, "calls": 2, "failures": 0,
        "judge_score": 80, "latency_ms": 500, "cost": 20, "price_per_call": 10, "note": "", "learned_at": 1000 + number,
    }  # fmt: skip
    return Lesson(**given_ | changes)


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "agent" / "memory.sqlite")


def test_lessons__of_what_was_learned__are_it_the_newest_first(memory):
    kept = [lesson(1, cost=2**128 - 1, judge_score=None, worked=False, note="slow é"), lesson(2, tool="chart")]
    for one in kept:
        memory.learn(one)
    assert memory.lessons() == kept[::-1]


def test_learn__of_a_session_and_tool_again__leaves_the_first(memory):
    memory.learn(lesson(1))
    memory.learn(lesson(1, worked=False))
    memory.learn(lesson(1, tool="chart"))
    assert [(one.tool, one.worked) for one in memory.lessons()] == [("quote", True), ("chart", True)]


def test_learn__beyond_the_bound__lets_the_oldest_go(tmp_path):
    memory = Memory(tmp_path / "memory.sqlite", max_rows=3)
    for number in (4, 1, 5, 2, 3):
        memory.learn(lesson(number))
    assert [one.learned_at for one in memory.lessons()] == [1005, 1004, 1003]
    memory.learn(lesson(1))
    assert [one.learned_at for one in memory.lessons()] == [1005, 1004, 1003]


def test_best__of_what_was_learned__names_the_service_and_why(memory):
    memory.learn(lesson(1, service_id=7, price_per_call=9))
    memory.learn(lesson(2, service_id=7, operator="0x0b"))
    memory.learn(lesson(3, service_id=8, task="weather", need="data:weather"))
    (found,) = memory.best("bitcoin price in usd", "")
    assert (found.service_id, found.category, found.operator, found.price_per_call) == (
        7, "data:crypto-price", "0x0b", 10,
    )  # fmt: skip
    assert (found.tool, found.label, found.closeness) == ("quote", "bitcoin price", Fraction(2, 3))
    assert (found.is_trusted, found.sentence) == (
        False,
        "Tested for bitcoin price: 80/100 over 2 runs · 100% ok · 500 ms",
    )
    assert [one.service_id for one in memory.best("", "data:weather")] == [8]


def test_best__after_a_failure__puts_the_other_first(memory):
    memory.learn(lesson(1, service_id=1, worked=False, cost=0, failures=2))
    memory.learn(lesson(2, service_id=2, price_per_call=99))
    assert [one.service_id for one in memory.best("bitcoin price", "")] == [2, 1]


def test_best__and_the_rest_without_a_file__find_nothing_and_write_none(memory, tmp_path):
    assert (memory.best("bitcoin price", "data:crypto"), memory.lessons(), memory.median_latency("a:b")) == (
        [],
        [],
        None,
    )
    assert list(tmp_path.iterdir()) == []


def test_median_latency__of_a_category__is_of_what_worked_in_it(memory):
    for number, latency in enumerate((100, 900, 300, 500), 1):
        memory.learn(lesson(number, latency_ms=latency))
    memory.learn(lesson(5, latency_ms=1, worked=False))
    memory.learn(lesson(6, latency_ms=1, category="other"))
    assert (memory.median_latency("data:crypto-price"), memory.median_latency("none")) == (400, None)


def test_category_of__a_service__is_what_own_runs_remember(memory):
    assert memory.category_of(7) is None
    memory.learn(lesson(1, service_id=7))
    assert (memory.category_of(7), memory.category_of(8)) == ("data:crypto-price", None)


def test_learn__in_a_broken_file__says_which(memory, tmp_path):
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "memory.sqlite").write_bytes(b"no database" * 500)
    for ask in (lambda: memory.learn(lesson(1)), memory.lessons, lambda: memory.best("a", "b")):
        with pytest.raises(UserError, match=r"memory.sqlite cannot be used"):
            ask()


@given(
    records(services=SERVICES, most=20), st.sampled_from(["", *TASKS, "bitcoin", "nothing like it"]),
    st.sampled_from(["", *NEEDS, "llm:none"]),
)  # fmt: skip
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_best__of_any_records__is_the_order_of_the_directory(tmp_path, found, task, need):
    path = tmp_path / "any.sqlite"
    path.unlink(missing_ok=True)
    memory = Memory(path)
    for one in found:
        memory.learn(_lesson_of(one))
    board = board_of([view(service_id, price=_newest_price(found, service_id)) for service_id in SERVICES], found)
    wanted = [place.match for place in board.best(task, need, len(SERVICES)) if place.match.label is not None]
    got = memory.best(task, need)
    assert [(one.service_id, one.tool, one.label, one.closeness, one.is_trusted) for one in got] == [
        (match.listing.service_id, match.tool, match.label, match.closeness, match.is_trusted) for match in wanted
    ]
    assert [one.sentence for one in got] == [sentence(match.label, match.summary) for match in wanted]


def _newest_price(found, service_id):
    of = [one for one in found if one.service_id == service_id]
    return max(of, key=lambda one: (one.recorded_at, one.session_id, one.tool)).price if of else 0


def _lesson_of(record):
    return lesson(
        session_id=record.session_id, tool=record.tool, service_id=record.service_id, need=record.need,
        task=record.task, worked=record.worked, calls=record.calls, judge_score=record.judge_score,
        latency_ms=record.latency_ms, cost=record.cost, price_per_call=record.price, note=record.note,
        learned_at=record.recorded_at,
    )  # fmt: skip


def test_memory__of_a_version_to_come__says_so(memory, tmp_path):
    memory.learn(lesson(1))
    with closing(sqlite3.connect(tmp_path / "agent" / "memory.sqlite")) as connection:
        connection.execute("pragma user_version = 2")
    with pytest.raises(UserError, match="is of version 2, not 1"):
        memory.lessons()
