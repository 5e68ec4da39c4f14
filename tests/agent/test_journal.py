"""What was begun is read back as it was written, whatever it holds."""

import threading
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.agent.journal import (
    BusyRunError,
    CallRow,
    Journal,
    Outcome,
    RunRow,
    SessionRow,
    SessionState,
    StepRow,
)
from indexer.errors import UserError

texts = st.text(st.characters(codec="utf-8"), max_size=20)
amounts = st.integers(0, 2**128)
counts = st.integers(0, 2**31)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3),
    max_leaves=8,
)
runs = st.builds(RunRow, *[texts] * 7)
steps = st.builds(
    StepRow, texts, texts, texts, found_by=texts, category=texts, input=values, output=values, reason=texts
)
sessions = st.builds(
    SessionRow, reservation_id=texts, run_id=texts, step_id=texts, position=counts, client=texts, category=texts,
    service_id=counts, operator=texts, endpoint=texts, price=amounts, deposit=amounts, attempt=counts, decision=texts,
    nonce=counts, sent_by=texts, account_nonce=counts, tx_hash=texts, raw=st.binary(max_size=40), session_id=texts,
    state=st.sampled_from(SessionState), paid=amounts, failure=texts, score=st.none() | st.integers(0, 100), why=texts,
)  # fmt: skip
calls = st.builds(
    CallRow, reservation_id=texts, calls=counts, item=counts, amount=amounts,
    request=st.dictionaries(texts, values, max_size=3), outcome=st.sampled_from(Outcome), status=counts, output=values,
    latency_ms=counts, judge_score=st.none() | st.integers(0, 100), reason=texts,
)  # fmt: skip
few = settings(max_examples=25, deadline=None)


def run(number=1, **changes):
    row = RunRow(f"run-{number}", "0xa", "name: x", "running", "", f"2026-01-01T00:00:{number:02}+00:00")
    return replace(row, **changes)


def session(number, **changes):
    row = SessionRow(
        f"r/{number}", "run-1", "price", number, "0xa", "data:crypto-price", 7, "0xb", "http://n", 10, 20, 0,
        f"d{number}", number,
    )  # fmt: skip
    return replace(row, **changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent" / "journal.sqlite"


@pytest.fixture
def journal(path):
    return Journal(path)


def after_a_restart(*rows):
    """A journal that a new process opens, after these were put into the file; its folder goes with the block."""
    folder = TemporaryDirectory()
    path = Path(folder.name) / "journal.sqlite"
    for row in rows:
        Journal(path).put(row)
    return folder, Journal(path)


@few
@given(runs, texts)
def test_run__after_a_restart__is_the_row_that_was_put_last(row, reason):
    last = replace(row, reason=reason)
    folder, journal = after_a_restart(row, last)
    with folder:
        assert journal.run(row.run_id) == last
        assert journal.runs(9) == [last]


@few
@given(steps)
def test_step__after_a_restart__is_the_row_that_was_put(row):
    folder, journal = after_a_restart(row)
    with folder:
        assert journal.step(row.run_id, row.step_id) == row
        assert journal.steps(row.run_id) == [row]


@few
@given(sessions)
def test_session__after_a_restart__is_the_row_that_was_put(row):
    folder, journal = after_a_restart(row)
    with folder:
        found = journal.session(row.reservation_id)
        assert found == row
        assert type(found.state) is SessionState
        assert journal.sessions(row.run_id, row.step_id) == journal.sessions(row.run_id) == [row]


@few
@given(calls)
def test_calls__after_a_restart__are_the_rows_that_were_put(row):
    folder, journal = after_a_restart(row)
    with folder:
        assert journal.calls(row.reservation_id) == [row]
        assert type(journal.calls(row.reservation_id)[0].outcome) is Outcome


def test_journal__that_nothing_was_put_into__holds_nothing_and_makes_no_file(journal, path):
    assert (journal.run("x"), journal.runs(5), journal.unfinished("0xa"), journal.last_decision("0xa")) == (
        None, [], [], None,
    )  # fmt: skip
    assert not path.exists()


def test_put__of_a_row_again__leaves_it_its_place(journal):
    for number in (1, 2, 3):
        journal.put(session(number))
        journal.put(StepRow("run-1", f"s{number}", "running"))
    journal.put(session(1, state=SessionState.DONE))
    journal.put(StepRow("run-1", "s1", "done"))
    assert [row.position for row in journal.sessions("run-1")] == [1, 2, 3]
    assert [(row.step_id, row.status) for row in journal.steps("run-1")] == [
        ("s1", "done"), ("s2", "running"), ("s3", "running"),
    ]  # fmt: skip


def test_runs__of_many__are_the_latest_the_newest_first(journal):
    for number in (2, 1, 3):
        journal.put(run(number))
    assert [row.run_id for row in journal.runs(2)] == ["run-3", "run-2"]


def test_unfinished__of_a_wallet__are_its_own_that_run_the_oldest_first(journal):
    for row in (run(3), run(1), run(2, status="done"), run(4, client="0xb")):
        journal.put(row)
    assert [row.run_id for row in journal.unfinished("0xa")] == ["run-1", "run-3"]


def test_closing__of_a_wallet__are_its_sessions_in_their_challenge_period(journal):
    journal.put(session(1, state=SessionState.CLOSING))
    journal.put(session(2, state=SessionState.DONE))
    journal.put(session(3, state=SessionState.CLOSING, client="0xb"))
    assert [row.position for row in journal.closing("0xa")] == [1]


def test_last_decision__of_a_wallet__is_that_of_the_latest_session_that_came_to_be(journal):
    journal.put(session(1))
    journal.put(session(2, state=SessionState.VOID))
    journal.put(session(3, client="0xb"))
    assert journal.last_decision("0xa") == "d1"


def test_holding__of_a_run_that_another_holds__is_refused_until_it_lets_go(journal, path):
    journal.put(run())
    with journal.holding("run-1"):
        with (
            pytest.raises(BusyRunError, match="Run run-1 is being made by another process: wait for it"),
            Journal(path).holding("run-1"),
        ):
            pass
        with Journal(path).holding("run-2"):
            pass
    with Journal(path).holding("run-1"):
        pass
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_put__from_many_threads__loses_no_row(journal):
    threads = [threading.Thread(target=journal.put, args=(session(number),)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {row.position for row in journal.sessions("run-1")} == set(range(16))


def test_journal__in_a_file_that_is_none__says_what_to_do(path):
    path.parent.mkdir()
    path.write_text("this is no database at all, but a text of some length")
    with pytest.raises(UserError, match=r"journal\.sqlite cannot be used .*move it away if it is broken"):
        Journal(path).runs(5)
