import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.agent.rating import CallResult, median, rate

results = st.lists(st.builds(CallResult, st.booleans(), st.integers(0, 10**6)), min_size=1, max_size=20)


def worked(*latencies):
    return [CallResult(True, latency) for latency in latencies]


@pytest.mark.parametrize(
    ("latencies", "middle"), [([], None), ([7], 7), ([9, 1, 5], 5), ([1, 4], 2), ([4, 1, 9, 6], 5)]
)
def test_median__of_latencies__is_the_middle_one_or_the_mean_of_two(latencies, middle):
    assert median(latencies) == middle


@pytest.mark.parametrize(
    ("latency", "score"), [(100, 100), (50, 100), (101, 100), (175, 90), (250, 80), (400, 60), (4000, 60)]
)
def test_rate__with_a_slow_session__takes_up_to_40_points_off(latency, score):
    assert rate(worked(latency), 100).score == score


def test_rate__with_two_of_three_calls_that_worked__scores_their_share():
    rating = rate([*worked(10, 10), CallResult(False, 10)], None)
    assert rating.score == 66
    assert rating.reason == "2 of 3 calls worked, 0 points off for slowness"


def test_rate__where_nothing_worked__scores_0():
    assert rate([CallResult(False, 5)], 100).score == 0


def test_rate__without_calls__is_an_error():
    with pytest.raises(ValueError, match="without calls"):
        rate([], 100)


@given(results, st.none() | st.integers(0, 10**6))
def test_rate__of_any_session__is_between_0_and_100(calls, category_median):
    assert 0 <= rate(calls, category_median).score <= 100


@given(results, st.integers(1, 10**6))
def test_rate__of_a_session__does_not_depend_on_the_order_of_its_calls(calls, category_median):
    assert rate(calls, category_median) == rate(calls[::-1], category_median)
