"""The record of a run, and the pinned rerun that is made of it."""

from dataclasses import replace

import pytest

from counterfoil.agent.journal import CallRow, Journal, Outcome, RunRow, SessionRow, SessionState, StepRow
from counterfoil.agent.record import pinned_rerun, record_of
from counterfoil.agent.workflow import dump, read
from indexer.errors import UserError

WORKFLOW = b"""
name: brief
steps:
  - {id: price, category: "data:crypto-price", input: {symbol: BTC}, calls: 2}
  - {id: news, category: "mcp:web-search", input: {query: x}, try_both: true}
"""
RUN = RunRow("run-1", "0xa", WORKFLOW.decode(), "done", "", "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:05+00:00")


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "journal.sqlite")
    made.put(RUN)
    return made


def put_session(journal, step_id, position, service_id, *calls, **changes):
    """Put a session with calls, each of `(item, outcome, output, judge_score, latency_ms)`."""
    reservation_id = f"run-1/{step_id}/{position}"
    row = SessionRow(
        reservation_id, "run-1", step_id, position, "0xa", "c", service_id, "0xb", "http://n", 10, 20, 0,
        f"0xd{service_id}", 0, session_id=f"0x{service_id}", state=SessionState.DONE, paid=10 * len(calls),
    )  # fmt: skip
    journal.put(replace(row, **changes))
    for number, (item, outcome, output, score, latency_ms) in enumerate(calls, 1):
        journal.put(
            CallRow(reservation_id, number, item, 10 * number, {}, outcome, 200, output, latency_ms, score, "r")
        )


def put_step(journal, step_id, output, status="done"):
    journal.put(StepRow("run-1", step_id, status, "found", "c", {"symbol": "BTC"}, output, "why"))


def worked(item, output, score=None, latency_ms=5):
    return item, Outcome.WORKED, output, score, latency_ms


FAILED = (0, Outcome.FAILED, None, None, 5)


def pins(journal):
    return {step.id: step.service_id for step in pinned_rerun(journal, RUN).steps}


def test_record__of_a_run__names_what_each_step_gave_cost_and_who_served_it(journal):
    put_step(journal, "price", ["a", "b"])
    put_session(journal, "price", 0, 7, worked(0, "a", 80), worked(1, "b"), score=90, why="2 of 2 calls worked.")
    put_step(journal, "news", None, "failed")
    put_session(journal, "news", 0, 8, FAILED, paid=2**100, failure="the node answered 502")
    record = record_of(journal, RUN)
    price, news = record["steps"]
    assert {name: record[name] for name in ("run_id", "client", "workflow", "status", "paid")} == {
        "run_id": "run-1", "client": "0xa", "workflow": "brief", "status": "done", "paid": str(2**100 + 20),
    }  # fmt: skip
    assert record["digest"] == read(WORKFLOW, "here").digest
    assert (record["started"], record["ended"]) == ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:05+00:00")
    assert (price["output"], price["paid"], price["found_by"], price["reason"]) == (["a", "b"], "20", "found", "why")
    assert (news["output"], news["paid"], news["status"]) == (None, str(2**100), "failed")
    assert price["sessions"] == [
        {
            "session_id": "0x7", "service_id": 7, "operator": "0xb", "receipt": "0xd7", "attempt": 0, "price": "10",
            "deposit": "20", "paid": "20", "state": "done", "failure": "", "score": 90, "why": "2 of 2 calls worked.",
            "calls": [
                {"calls": 1, "item": 0, "outcome": "worked", "status": 200, "latency_ms": 5, "judge_score": 80,
                 "reason": "r"},
                {"calls": 2, "item": 1, "outcome": "worked", "status": 200, "latency_ms": 5, "judge_score": None,
                 "reason": "r"},
            ],
        }
    ]  # fmt: skip


def test_record__of_a_session_that_was_never_opened__leaves_it_out(journal):
    put_step(journal, "price", None, "failed")
    put_session(journal, "price", 0, 7, session_id="", state=SessionState.VOID, paid=0)
    assert record_of(journal, RUN)["steps"][0]["sessions"] == []


def test_pinned_rerun__of_steps_that_were_served__pins_each_to_its_service_and_reads_back(journal):
    put_step(journal, "price", ["a", "b"])
    put_session(journal, "price", 0, 7, worked(0, "a"), worked(1, "b"))
    put_step(journal, "news", "n")
    put_session(journal, "news", 0, 9, worked(0, "n"))
    assert pins(journal) == {"price": 7, "news": 9}
    rerun = pinned_rerun(journal, RUN)
    assert read(dump(rerun).encode(), "rerun") == rerun


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (worked(0, "n", 60), worked(0, "m", 90), 9),
        (worked(0, "n", 90), worked(0, "m", 60), 8),
        (worked(0, "n", 90, 50), worked(0, "m", 90, 20), 9),
        (worked(0, "n", 90, 20), worked(0, "n", 90, 20), 8),
        (FAILED, worked(0, "m"), 9),
    ],
)
def test_pinned_rerun__of_a_step_that_tried_two__pins_the_one_whose_answer_was_kept(journal, first, second, kept):
    put_step(journal, "news", first[2] if kept == 8 else second[2])
    put_session(journal, "news", 0, 8, first)
    put_session(journal, "news", 1, 9, second)
    assert pins(journal) == {"price": None, "news": kept}


def test_pinned_rerun__of_a_step_that_two_served_in_turn__pins_the_last(journal):
    put_step(journal, "price", ["a", "b"])
    put_session(journal, "price", 0, 7, worked(0, "a"), FAILED, failure="it broke")
    put_session(journal, "price", 1, 8, worked(1, "b"))
    assert pins(journal)["price"] == 8


def test_pinned_rerun__of_a_session_that_a_reorg_took_away__pins_the_one_that_stayed(journal):
    put_step(journal, "price", ["a", "b"])
    put_session(journal, "price", 0, 7, worked(0, "a"), worked(1, "b"), state=SessionState.VOID)
    put_session(journal, "price", 1, 8, worked(0, "a", 0, 99), worked(1, "b", 0, 99))
    assert pins(journal)["price"] == 8


def test_pinned_rerun__of_a_run_that_nobody_served__says_so(journal):
    put_step(journal, "price", None, "failed")
    put_session(journal, "price", 0, 7, worked(0, "a"), FAILED, failure="it broke")
    with pytest.raises(UserError, match="No step of run run-1 was served, so there is nothing to pin"):
        pinned_rerun(journal, RUN)
