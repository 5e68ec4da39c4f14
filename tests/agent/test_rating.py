from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.agent.rating import MAX_REASON, CallResult, median, rate

results = st.lists(
    st.builds(CallResult, st.booleans(), st.integers(0, 10**6), st.none() | st.integers(0, 100), st.booleans()),
    max_size=20,
)

UNKNOWN = "The median latency is 10 ms, and the category's is not known."
JUDGED = "The judge gave 50/100 on average to 1 of them."
OURS = "failed on our own side"


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


def failed(**changes):
    return CallResult(False, 10, **changes)


@pytest.mark.parametrize(
    ("calls", "median_ms", "score", "reason"),
    [
        (
            [*worked(10, 10), failed()], None, 66,
            f"2 of 3 calls worked. {UNKNOWN}",
        ),
        (
            worked(400), 100, 60,
            "1 of 1 call worked. 40 points off for slowness: the median latency is 400 ms, the category's 100 ms.",
        ),
        (
            worked(10), 100, 100,
            "1 of 1 call worked. 0 points off for slowness: the median latency is 10 ms, the category's 100 ms.",
        ),
        ([failed()], 100, 0, "0 of 1 call worked."),
        (
            [CallResult(True, 10, 80), CallResult(True, 10, 91), CallResult(True, 10), failed()], None, 64,
            f"3 of 4 calls worked. The judge gave 86/100 on average to 2 of them. {UNKNOWN}",
        ),
        (
            [CallResult(True, 10, 50), failed(own_fault=True), failed(own_fault=True)], None, 50,
            f"1 of 1 call worked. {JUDGED} {UNKNOWN} 2 calls {OURS} and do not count.",
        ),
        ([failed(), failed(own_fault=True)], 100, 0, f"0 of 1 call worked. 1 call {OURS} and does not count."),
        ([CallResult(True, 400, 30)], 100, 0, None),
        ([CallResult(True, 10, 0)], 100, 0, None),
        ([CallResult(True, 10, 100), failed(judge_score=0)], 100, 50, None),
    ],
)  # fmt: skip
def test_rate__of_a_session__scores_it_and_says_why(calls, median_ms, score, reason):
    rating = rate(calls, median_ms)
    assert rating.score == score
    assert rating.reason == (reason or rating.reason)


@pytest.mark.parametrize("calls", [[], [failed(own_fault=True)], [CallResult(True, 5, own_fault=True)] * 3])
def test_rate__where_no_call_says_anything_of_the_node__is_none(calls):
    assert rate(calls, 100) is None


@pytest.mark.parametrize("score", [-1, 101])
def test_call_result__with_a_score_out_of_range__is_none(score):
    with pytest.raises(ValueError, match="from 0 to 100"):
        CallResult(True, 1, score)


@given(results, st.none() | st.integers(0, 10**6))
def test_rate__of_any_session__is_the_published_formula(calls, category_median):
    rating = rate(calls, category_median)
    counted = [call for call in calls if not call.own_fault]
    if not counted:
        assert rating is None
        return
    good = [call for call in counted if call.worked]
    scores = [call.judge_score for call in good if call.judge_score is not None]
    base = Fraction(sum(scores), len(scores)) if scores else Fraction(100)
    middle = median([call.latency_ms for call in good])
    slowness = 0
    if middle and category_median and middle > category_median:
        slowness = min(40, floor(Fraction(40 * (middle - category_median), 3 * category_median)))
    assert rating.score == max(0, floor(base * Fraction(len(good), len(counted))) - slowness)
    assert 0 <= rating.score <= 100


@given(results, st.integers(1, 10**6))
def test_rate__of_a_session__does_not_depend_on_the_order_of_its_calls(calls, category_median):
    assert rate(calls, category_median) == rate(calls[::-1], category_median)


@given(results, st.integers(0, 10), st.integers(1, 10**6))
def test_rate__with_more_faults_of_our_own__stays_as_it_is(calls, faults, category_median):
    more = rate([*calls, *[failed(own_fault=True)] * faults], category_median)
    before = rate(calls, category_median)
    assert (more and more.score) == (before and before.score)


def test_rate__of_the_largest_numbers__keeps_its_reason_within_its_bytes():
    slow = CallResult(True, 2**64, 99)
    rating = rate([slow] * 100_000 + [failed(own_fault=True)] * 100_000, 2**63)
    assert len(rating.reason.encode()) <= MAX_REASON
