"""The size of ranges, learnt from answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.ranges import FEW_LOGS, MANY_LOGS, RangeSize


@pytest.mark.parametrize(("asked", "usable", "blocks"), [(100, None, 50), (100, 30, 30), (100, 100, 50), (1, None, 1)])
def test_refused__with_and_without_a_usable_range__takes_it_or_the_half(asked, usable, blocks):
    size = RangeSize(100, 1000)
    size.refused(asked, usable)
    assert size.blocks == blocks


def test_answered__after_a_refusal__tries_more_only_after_many_good_answers():
    size = RangeSize(100, 1000)
    size.refused(100)
    seen = []
    for _ in range(40):
        size.answered(0)
        seen.append(size.blocks)
    assert seen == [50] * 31 + [76] + [100] * 8


def test_answered__by_the_number_of_logs__grows_shrinks_or_stays():
    size = RangeSize(100, 1000)
    size.answered(FEW_LOGS - 1)
    assert size.blocks == 151
    size.answered(FEW_LOGS)
    assert size.blocks == 151
    size.answered(MANY_LOGS + 1)
    assert size.blocks == 75


@given(
    st.lists(st.one_of(st.integers(0, 10_000), st.tuples(st.integers(1, 5000), st.none() | st.integers(-5, 10**12))))
)
def test_blocks__after_any_answers_and_refusals__are_from_1_to_the_largest(events):
    size = RangeSize(250, 2000)
    for event in events:
        if isinstance(event, tuple):
            size.refused(min(event[0], size.blocks), event[1])
        else:
            size.answered(event)
        assert 1 <= size.blocks <= 2000
