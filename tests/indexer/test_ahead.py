"""Results that are made in the background: in order, few at a time, and with what went wrong at their end."""

import threading

import pytest

from indexer.ahead import RESULTS_AHEAD, Ahead
from indexer.errors import UnavailableError

PATIENCE = 20


def drain(ahead, found):
    while ahead.pending:
        found += ahead.take()


def all_of(ahead):
    found = []
    drain(ahead, found)
    return found


def test_take__of_a_long_job__gives_every_result_once_in_order():
    with Ahead() as ahead:
        ahead.start(iter(range(1000)))
        assert all_of(ahead) == list(range(1000))
        assert ahead.take() == []


def test_take__of_results_that_come_one_by_one__waits_for_two_of_them_unless_there_are_no_more():
    taken = []
    with Ahead() as ahead:
        ahead.start(iter(range(7)))
        while ahead.pending:
            taken.append(ahead.take())
    assert [number for some in taken for number in some] == list(range(7))
    assert all(len(some) >= 2 for some in taken[:-2])


def test_take__after_an_error__gives_what_was_made_before_it_first():
    def results():
        yield from (1, 2)
        raise UnavailableError("The node is gone; waiting.")

    found = []
    with Ahead() as ahead:
        ahead.start(results())
        with pytest.raises(UnavailableError, match="is gone"):
            drain(ahead, found)
        assert (found, ahead.pending, ahead.take()) == ([1, 2], False, [])


def test_start__of_a_job_that_nobody_takes_from__makes_few_results_and_no_more():
    made, full = [], threading.Event()

    def results():
        for number in range(100):
            made.append(number)
            if number == RESULTS_AHEAD:
                full.set()
            yield number

    with Ahead() as ahead:
        ahead.start(results())
        assert full.wait(PATIENCE)
        assert ahead.take() == list(range(RESULTS_AHEAD))
        ahead.drop()
    assert len(made) <= 2 * RESULTS_AHEAD + 2


def test_start__of_another_job__cancels_the_one_before_and_forgets_its_results():
    go_on, cancelled = threading.Event(), []

    def hanging():
        go_on.wait(PATIENCE)
        yield "old"

    def cancel():
        cancelled.append(1)
        go_on.set()

    with Ahead() as ahead:
        ahead.start(hanging(), cancel)
        ahead.start(iter(["new"]))
        assert all_of(ahead) == ["new"]
    assert cancelled == [1]


def test_exit__while_a_job_waits_for_its_results_to_be_taken__ends_it():
    with Ahead() as ahead:
        ahead.start(iter(range(100)))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


def test_take__once_it_is_over__waits_for_nothing_and_leaves_a_hanging_thread_alone():
    go_on, over = threading.Event(), []

    def hanging():
        over.append(1)
        go_on.wait(PATIENCE)
        yield 1

    try:
        with Ahead(lambda: bool(over)) as ahead:
            ahead.start(hanging())
            with pytest.raises(UnavailableError, match="run stops here"):
                ahead.take()
    finally:
        go_on.set()


def test_start__where_the_system_gives_no_thread__has_no_job(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Ahead() as ahead:
        ahead.start(iter([1]))
        assert (ahead.pending, ahead.take()) == (False, [])
