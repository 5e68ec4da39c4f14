"""Caps and the book of what was spent: no interleaving of whoever spends passes a cap."""

import multiprocessing
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, date, datetime
from threading import Barrier

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from counterfoil.agent.spending import (
    BookError,
    OverPolicyError,
    Reservation,
    SpendBook,
    SpendPolicy,
    Spent,
    check,
)
from indexer.errors import UserError

DAY = date(2026, 11, 30)
NEXT = date(2026, 12, 1)
FREE = SpendPolicy()


def reservation(number=1, **changes):
    given_ = {
        "reservation_id": f"r{number}", "run_id": "run", "operator": "0x0a", "price_per_call": 10, "calls": 10,
        "deposit": 100, "day": DAY,
    }  # fmt: skip
    return Reservation(**given_ | changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent" / "spending.sqlite"


@pytest.fixture
def book(path):
    return SpendBook(path)


# --- the sums


def test_spent__of_what_is_reserved_settled_and_released__counts_deposits_then_payments(book):
    for number in (1, 2, 3):
        book.reserve(FREE, reservation(number))
    assert book.spent(day=DAY) == Spent(paid=0, reserved=300)
    book.settled("r1", 40)
    book.released("r2")
    assert book.spent(day=DAY) == Spent(paid=40, reserved=100)
    assert book.spent(day=DAY).total == 140


def test_spent__by_run_day_and_operator__counts_what_is_of_all_of_them(book):
    book.reserve(FREE, reservation(1, run_id="a", deposit=1))
    book.reserve(FREE, reservation(2, run_id="b", operator="0x0B", deposit=2))
    book.reserve(FREE, reservation(3, run_id="b", day=NEXT, deposit=4))
    sums = {
        "all": book.spent(), "a": book.spent(run_id="a"), "b": book.spent(run_id="b"), "today": book.spent(day=DAY),
        "0x0b": book.spent(operator="0x0b"), "b next": book.spent(run_id="b", day=NEXT), "none": book.spent(run_id="c"),
    }  # fmt: skip
    assert {name: found.reserved for name, found in sums.items()} == {
        "all": 7, "a": 1, "b": 6, "today": 3, "0x0b": 2, "b next": 4, "none": 0,
    }  # fmt: skip


def test_spent__of_amounts_beyond_64_bits__is_exact(book):
    book.reserve(FREE, reservation(1, deposit=2**128 - 1))
    book.reserve(FREE, reservation(2, deposit=2**128 - 1))
    book.settled("r2", 2**127)
    assert book.spent() == Spent(2**127, 2**128 - 1)


# --- the caps


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (SpendPolicy(per_call=9), "A call costs 10 base units, 1 more than the cap per call of 9"),
        (SpendPolicy(per_run=299), r"passes the cap per run of 299 by 1: 40 are spent and 160 reserved"),
        (SpendPolicy(per_day=250), r"the cap per day \(2026-11-30\) of 250 by 50: 40 are spent and 160 reserved"),
        (SpendPolicy(per_operator=150), r"the cap per operator and day \(0x0a\) of 150 by 50: 40 are spent and 60 res"),
    ],
)
def test_reserve__beyond_a_cap__names_it_with_what_stands_against_it(book, policy, words):
    book.reserve(FREE, reservation(1))
    book.settled("r1", 40)
    book.reserve(FREE, reservation(2, deposit=60))
    book.reserve(FREE, reservation(3, operator="0x0b"))
    with pytest.raises(OverPolicyError, match=words) as refused:
        book.reserve(policy, reservation(4))
    with pytest.raises(OverPolicyError) as said:
        check(policy, book, reservation(4))
    assert str(said.value) == str(refused.value)
    assert book.spent().total == 200


def test_reserve__up_to_every_cap__is_taken(book):
    book.reserve(FREE, reservation(1))
    policy = SpendPolicy(per_call=10, per_run=200, per_day=200, per_operator=200)
    check(policy, book, reservation(2))
    assert book.spent().total == 100
    book.reserve(policy, reservation(2))
    with pytest.raises(OverPolicyError, match="per run"):
        book.reserve(policy, reservation(3, price_per_call=0, calls=0, deposit=1))


def test_reserve__on_the_next_day__begins_at_nothing_but_for_the_run(book):
    book.reserve(FREE, reservation(1))
    policy = SpendPolicy(per_day=100, per_operator=100)
    book.reserve(policy, reservation(2, day=NEXT))
    with pytest.raises(OverPolicyError, match="per run of 250 by 50"):
        book.reserve(SpendPolicy(per_run=250), reservation(3, day=NEXT))


def test_reserve__after_a_session_was_settled_for_less__has_the_difference_again(book):
    policy = SpendPolicy(per_run=100)
    book.reserve(policy, reservation(1))
    with pytest.raises(OverPolicyError):
        book.reserve(policy, reservation(2, deposit=60))
    book.settled("r1", 40)
    book.reserve(policy, reservation(2, deposit=60))
    assert book.spent() == Spent(40, 60)


# --- each id once


def test_reserve__of_the_same_once_more__changes_nothing_even_at_the_cap(book):
    policy = SpendPolicy(per_run=100)
    for _ in range(3):
        book.reserve(policy, reservation(1))
    check(policy, book, reservation(1))
    assert book.spent() == Spent(0, 100)


def test_reserve__of_an_id_with_other_terms_or_that_ended__is_refused(book):
    book.reserve(FREE, reservation(1))
    with pytest.raises(BookError, match="r1 stands with other terms: take a new id"):
        book.reserve(FREE, reservation(1, deposit=101))
    book.settled("r1", 0)
    with pytest.raises(BookError, match="r1 was settled already: take a new id"):
        book.reserve(FREE, reservation(1))
    with pytest.raises(BookError, match="settled already"):
        check(FREE, book, reservation(1))


def test_settled__twice_alike__counts_once(book):
    book.reserve(FREE, reservation(1))
    book.settled("r1", 40)
    book.settled("r1", 40)
    assert book.spent() == Spent(40, 0)
    with pytest.raises(BookError, match="settled at 40 base units, not 41"):
        book.settled("r1", 41)
    with pytest.raises(BookError, match="settled at 40 base units: it stands"):
        book.released("r1")


def test_settled__of_what_was_released__counts_after_all(book):
    book.reserve(FREE, reservation(1))
    book.released("r1")
    book.released("r1")
    assert book.spent() == Spent(0, 0)
    book.settled("r1", 7)
    assert book.spent() == Spent(7, 0)


@pytest.mark.parametrize("paid", [-1, 101])
def test_settled__at_what_the_deposit_cannot_have_paid__is_refused(book, paid):
    book.reserve(FREE, reservation(1))
    with pytest.raises(BookError, match="is of 100 base units"):
        book.settled("r1", paid)
    assert book.spent() == Spent(0, 100)


def test_settled_and_released__of_an_unknown_id__say_so(book):
    for end in (lambda: book.settled("r9", 1), lambda: book.released("r9")):
        with pytest.raises(BookError, match="There is no reservation r9 in the book"):
            end()


@pytest.mark.parametrize(
    "wrong",
    [
        {"deposit": -1}, {"deposit": 2**128}, {"price_per_call": -1}, {"calls": -1}, {"operator": ""}, {"run_id": ""},
        {"reservation_id": ""}, {"day": datetime(2026, 11, 30, tzinfo=UTC)},
    ],
)  # fmt: skip
def test_reservation__out_of_range__is_none(wrong):
    with pytest.raises(ValueError, match=r"amount|calls|names itself|without a time"):
        reservation(1, **wrong)


# --- the file


def test_check_and_spent__without_a_book__write_none(book, path):
    check(SpendPolicy(per_run=100), book, reservation(1))
    with pytest.raises(OverPolicyError, match="0 are spent and 0 reserved"):
        check(SpendPolicy(per_run=99), book, reservation(1))
    assert book.spent() == Spent(0, 0)
    assert not path.parent.exists()


@pytest.mark.parametrize("data", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 2000])
def test_reserve__in_a_broken_file__spends_nothing_and_says_which(book, path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    for ask in (lambda: book.reserve(FREE, reservation(1)), book.spent, lambda: check(FREE, book, reservation(1))):
        with pytest.raises(UserError, match=r"spending.sqlite cannot be used .*move it away if it is broken"):
            ask()


def test_reserve__in_a_book_of_another_version__says_so(book, path):
    book.reserve(FREE, reservation(1))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 9")
    with pytest.raises(UserError, match="is of version 9, not 1"):
        book.reserve(FREE, reservation(2))


def _reserve_and_die(path, number):
    SpendBook(path).reserve(FREE, reservation(number))
    os.kill(os.getpid(), signal.SIGKILL)


def test_reserve__just_before_a_kill__is_in_the_book(path, book):
    process = multiprocessing.get_context("spawn").Process(target=_reserve_and_die, args=(path, 1))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert book.spent() == Spent(0, 100)


def _race(path, number, barrier, won):
    barrier.wait(60)
    with suppress(OverPolicyError):
        SpendBook(path).reserve(SpendPolicy(per_day=150), reservation(number))
        won.put(number)


def test_reserve__by_two_processes_at_one_cap__is_won_by_exactly_one(path, book):
    context = multiprocessing.get_context("spawn")
    barrier, won = context.Barrier(2), context.Queue()
    racers = [context.Process(target=_race, args=(path, number, barrier, won)) for number in (1, 2)]
    for racer in racers:
        racer.start()
    winner = won.get(timeout=60)
    for racer in racers:
        racer.join(60)
    assert ([racer.exitcode for racer in racers], won.empty()) == ([0, 0], True)
    assert winner in (1, 2)
    assert book.spent() == Spent(0, 100)


def test_reserve__by_many_threads_at_one_cap__takes_what_fits(path, book):
    barrier = Barrier(8)

    def reserve(number):
        barrier.wait(60)
        try:
            SpendBook(path).reserve(SpendPolicy(per_operator=350), reservation(number))
        except OverPolicyError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(reserve, range(8))) == 3
    assert book.spent() == Spent(0, 300)


# --- any interleaving

POLICY = SpendPolicy(per_call=50, per_run=300, per_day=400, per_operator=250)


class Spenders(RuleBasedStateMachine):
    """Several users of one book, beside a list of what they did."""

    path = None

    def __init__(self):
        super().__init__()
        self.path.unlink(missing_ok=True)
        self.known = {}

    @rule(
        number=st.integers(0, 12), run=st.sampled_from(["a", "b"]), operator=st.sampled_from(["0x0a", "0x0b"]),
        day=st.sampled_from([DAY, NEXT]), price=st.integers(0, 60), deposit=st.integers(0, 200),
    )  # fmt: skip
    def reserve(self, number, run, operator, day, price, deposit):
        wanted = reservation(number, run_id=run, operator=operator, day=day, price_per_call=price, deposit=deposit)
        fits = price <= 50 and all(
            self.total(**scope) + deposit <= cap
            for scope, cap in (({"run": run}, 300), ({"day": day}, 400), ({"day": day, "operator": operator}, 250))
        )
        known = self.known.get(number)
        expected = None if fits else OverPolicyError
        if known:
            expected = None if known["terms"] == wanted and known["state"] == "reserved" else BookError
        self.expect(expected, lambda: check(POLICY, SpendBook(self.path), wanted))
        self.expect(expected, lambda: SpendBook(self.path).reserve(POLICY, wanted))
        if expected is None:
            self.known[number] = {"terms": wanted, "state": "reserved", "counts": deposit}

    @rule(number=st.integers(0, 12), paid=st.integers(0, 200))
    def settle(self, number, paid):
        known = self.known.get(number)
        wrong = not known or paid > known["terms"].deposit
        wrong = wrong or (known["state"] == "settled" and known["counts"] != paid)
        # A late payment of a released session may pass a cap: it was paid, and from there on nothing else is.
        if not wrong and known["state"] == "released":
            return
        self.expect(BookError if wrong else None, lambda: SpendBook(self.path).settled(f"r{number}", paid))
        if not wrong:
            known |= {"state": "settled", "counts": paid}

    @rule(number=st.integers(0, 12))
    def release(self, number):
        known = self.known.get(number)
        wrong = not known or known["state"] == "settled"
        self.expect(BookError if wrong else None, lambda: SpendBook(self.path).released(f"r{number}"))
        if not wrong:
            known |= {"state": "released", "counts": 0}

    @invariant()
    def no_sum_passes_its_cap(self):
        book = SpendBook(self.path)
        for day in (DAY, NEXT):
            assert book.spent(day=day).total == self.total(day=day) <= 400
            for operator in ("0x0a", "0x0b"):
                assert book.spent(day=day, operator=operator).total == self.total(day=day, operator=operator) <= 250
        for run in ("a", "b"):
            assert book.spent(run_id=run).total == self.total(run=run) <= 300

    def total(self, run=None, day=None, operator=None):
        return sum(
            known["counts"]
            for known in self.known.values()
            if (run or known["terms"].run_id) == known["terms"].run_id
            and (day or known["terms"].day) == known["terms"].day
            and (operator or known["terms"].operator) == known["terms"].operator
        )

    @staticmethod
    def expect(error, act):
        if error is None:
            act()
        else:
            with pytest.raises(error):
                act()


def test_spend_book__under_any_interleaving__never_passes_a_cap(tmp_path):
    Spenders.path = tmp_path / "spending.sqlite"
    run_state_machine_as_test(Spenders, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
