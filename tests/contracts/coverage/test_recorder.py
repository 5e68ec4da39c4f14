"""The recorder sees the statements and branches that ran, and none of those that did not."""

import boa
import pytest

from tests.contracts.coverage.recorder import Recorder

SOURCE = """
total: uint256

@external
def choose(a: uint256) -> uint256:
    if a > 5:
        self.total = a
    elif a == 5:
        return 0
    return 1

@external
def leave(a: uint256):
    self._leave(a)

@external
def skip(a: uint256) -> uint256:
    count: uint256 = 0
    for i: uint256 in range(a, bound=9):
        if i % 2 == 0:
            continue
        count += 1
    return count

@internal
def _leave(a: uint256):
    if a == 0:
        return
    self.total = a
"""
IF, ELIF, BARE, EVEN = "if a > 5:", "elif a == 5:", "if a == 0:", "if i % 2 == 0:"


@pytest.fixture
def recorded():
    """The outcomes of the `if` of each line, and the lines that ran, after some calls."""
    subject = boa.loads(SOURCE)
    recorder = Recorder()

    def run(*calls):
        for name, argument in calls:
            called = getattr(subject, name)
            data = called.prepare_calldata(argument)
            recorder.record(boa.env.execute_code(to_address=subject.address, data=data, contract=subject), subject)
        lines = SOURCE.splitlines()
        outcomes = {lines[line - 1].strip(): found for (_, line, _), found in recorder.outcomes.items()}
        for _, merged in recorder.merged():
            next(iter(recorder.lines.values())).update(merged)
        return outcomes, {lines[line - 1].strip() for found in recorder.lines.values() for line in found}

    return run


def test_recorder__of_a_condition_that_holds__sees_the_body_alone(recorded):
    outcomes, lines = recorded(("choose", 6))
    assert outcomes == {IF: {True}}
    assert "self.total = a" in lines
    assert ELIF not in lines


def test_recorder__of_a_condition_that_fails__does_not_see_the_body(recorded):
    outcomes, lines = recorded(("choose", 4))
    assert outcomes == {IF: {False}, ELIF: {False}}
    assert not {"self.total = a", "return 0"} & lines


def test_recorder__of_both_ways__sees_both(recorded):
    outcomes, lines = recorded(("choose", 4), ("choose", 5), ("choose", 6))
    assert outcomes == {IF: {False, True}, ELIF: {False, True}}
    assert {"self.total = a", "return 0", "return 1"} <= lines


@pytest.mark.parametrize(("argument", "entered"), [(0, True), (1, False)])
def test_recorder__of_a_bare_return__sees_whether_it_was_taken(recorded, argument, entered):
    outcomes, lines = recorded(("leave", argument))
    assert outcomes == {BARE: {entered}}
    assert ("self.total = a" in lines) is not entered


@pytest.mark.parametrize(("rounds", "ways"), [(1, {True}), (2, {True, False})])
def test_recorder__of_a_continue__sees_whether_it_was_taken(recorded, rounds, ways):
    outcomes, lines = recorded(("skip", rounds))
    assert outcomes == {EVEN: ways}
    assert ("count += 1" in lines) is (False in ways)
