import statistics
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from counterfoil.routing.experience import (
    NOTES_KEPT,
    Listing,
    Record,
    Summary,
    best,
    by_need,
    by_task,
    closeness,
    distances,
    falling,
    sentence,
    words,
)

NEEDS = ["data:crypto", "image:gen", "web:read"]
TASKS = ["", "bitcoin price", "bitcoin spot price in usd", "2d cartoon animation", "photoreal product shots"]


def record(number=1, **changes):
    """A record that worked, paid 10 and was judged 80."""
    given_ = {
        "service_id": 1, "session_id": f"0x{number:064x}", "tool": "quote", "need": "data:crypto",
        "task": "bitcoin price", "worked": True, "calls": 1, "judge_score": 80, "latency_ms": 500, "cost": 10,
        "price": 10, "note": "", "recorded_at": 1000 + number,
    }  # fmt: skip
    return Record(**given_ | changes)


@st.composite
def records(draw, services=(1, 2, 3), most=12):
    """Records of some services, each of a session of its own."""
    made = []
    for number in range(draw(st.integers(0, most))):
        worked, price = draw(st.booleans()), draw(st.integers(0, 30))
        made.append(
            record(
                number, service_id=draw(st.sampled_from(services)), tool=draw(st.sampled_from(["quote", "chart"])),
                need=draw(st.sampled_from(NEEDS)), task=draw(st.sampled_from(TASKS)), worked=worked, price=price,
                cost=price * draw(st.integers(0, 3)) if worked else draw(st.sampled_from([0, price])),
                calls=draw(st.integers(0, 3)), judge_score=draw(st.none() | st.integers(0, 100)),
                latency_ms=draw(st.integers(0, 5000)), note=draw(st.sampled_from(["", "fine", "slow"])),
                recorded_at=draw(st.integers(0, 3)),
            )
        )  # fmt: skip
    return made


def listings_of(found, services=(1, 2, 3), price=10):
    needs, tasks = by_need(found), by_task(found)

    def of(groups, service_id):
        return {(tool, label): summary for (service, tool, label), summary in groups.items() if service == service_id}

    return [Listing(number, price, Fraction(1, 2), of(needs, number), of(tasks, number)) for number in services]


# --- labels


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("", set()),
        ("the of to", set()),
        ("Bitcoin spot price in USD", {"bitcoin", "spot", "price", "usd"}),
        ("2D cartoon-animation_loops", {"2d", "cartoon", "animation", "loop"}),
        ("stories glasses dishes matches boxes quizzes", {"story", "glass", "dish", "match", "box", "quizz"}),
        ("glass status genius tennis", {"glass", "status", "genius", "tennis"}),
        ("gas bus its news", {"gas", "bus", "its", "new"}),
        ("ﬁles ＡＢＣ Ünïcode", {"file", "abc", "ünïcode"}),
        ("houses prices series", {"house", "price", "sery"}),
    ],
)
def test_words__of_a_label__are_the_ones_that_count(label, expected):
    assert words(label) == expected


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("bitcoin price", "bitcoin spot price in usd", Fraction(1, 2)),
        ("bitcoin price", "Prices of Bitcoin", 1),
        ("bitcoin price", "weather", 0),
        ("", "", 0),
        ("the", "a", 0),
        ("", "bitcoin", 0),
    ],
)
def test_closeness__of_two_labels__is_the_share_of_common_words(one, other, share):
    assert closeness(one, other) == closeness(other, one) == share


@given(st.text(max_size=40), st.text(max_size=40))
def test_closeness__of_any_text__is_symmetric_and_from_0_to_1(one, other):
    assert closeness(one, other) == closeness(other, one)
    assert 0 <= closeness(one, other) <= 1
    assert closeness(one, one) == (1 if words(one) else 0)


@given(st.lists(st.sampled_from([*TASKS, "the", "price of bitcoin", "usd", "shots"])), st.sampled_from(TASKS))
def test_distances__of_any_labels__are_those_of_the_labels_that_are_close_at_all(labels, task):
    near = {label: closeness(task, label) for label in labels}
    assert distances(task, labels) == {label: falling(share) for label, share in near.items() if share}


@given(st.fractions(0, 1), st.fractions(0, 1))
def test_falling__of_any_two_ratios__sorts_the_higher_one_first(one, other):
    assert (falling(one) < falling(other), falling(one) == falling(other)) == (one > other, one == other)


@pytest.mark.parametrize("least", [2**70, 2**200])
def test_falling__of_ratios_that_differ_by_next_to_nothing__still_tells_them_apart(least):
    assert (
        falling(Fraction(1, 2) + Fraction(1, least)) < falling(Fraction(1, 2)) < falling(Fraction(least - 1, 2 * least))
    )


# --- sums


@given(records(), st.randoms(use_true_random=False))
def test_summaries__of_records_in_any_order__are_the_same(found, chance):
    shuffled = chance.sample(found, len(found))
    assert by_need(shuffled) == by_need(found)
    assert by_task(shuffled) == by_task(found)


@given(records())
def test_summaries__of_any_records__are_what_adding_by_hand_gives(found):
    groups = {}
    for one in found:
        groups.setdefault((one.service_id, one.tool, one.need), []).append(one)
    summaries = by_need(found)
    assert summaries.keys() == groups.keys()
    for group, summary in summaries.items():
        of = groups[group]
        weights = [one.price if not one.worked and one.cost == 0 else one.cost for one in of]
        worked = [weight for one, weight in zip(of, weights, strict=True) if one.worked]
        scores = [one.judge_score for one in of if one.judge_score is not None]
        latencies = [Fraction(one.latency_ms) for one in of if one.worked]
        calls = sum(one.calls for one in of)
        assert summary.runs == len(of)
        assert summary.worked_rate == (Fraction(sum(worked), sum(weights)) if sum(weights) else None)
        assert summary.judge_score == (Fraction(sum(scores), len(scores)) if scores else None)
        assert summary.median_latency == (statistics.median(latencies) if latencies else None)
        assert summary.cost_per_call == (Fraction(sum(one.cost for one in of), calls) if calls else None)
        notes = sorted(
            ((one.recorded_at, one.session_id, one.note) for one in of if one.note), key=lambda n: (-n[0], n[1])
        )
        assert [(at, session, text) for at, session, _, text in summary.notes] == notes[:NOTES_KEPT]


@given(records(most=8), records(most=1).filter(bool))
def test_add__of_a_record__changes_its_own_groups_and_no_other(found, more):
    added = replace(more[0], session_id="0x" + "ff" * 32)
    before, after = by_need(found), by_need([*found, added])
    own = (added.service_id, added.tool, added.need)
    assert {group: summary for group, summary in after.items() if group != own} == {
        group: summary for group, summary in before.items() if group != own
    }
    assert after[own].runs == (before[own].runs if own in before else 0) + 1


def test_worked_rate__of_failures_that_paid_nothing__weighs_each_as_one_call():
    found = [record(1, cost=30), record(2, worked=False, cost=0), record(3, worked=False, cost=0, price=20)]
    (summary,) = by_need(found).values()
    assert summary.worked_rate == Fraction(30, 30 + 10 + 20)


def test_worked_rate__of_a_free_listing__is_unknown_and_ranks_as_0():
    (summary,) = by_need([record(cost=0, price=0)]).values()
    assert summary.worked_rate is None
    assert summary.quality == 0


def test_quality__with_and_without_a_judge__is_exact():
    (judged,) = by_need([record(1), record(2, judge_score=100)]).values()
    (unjudged,) = by_need([record(1, judge_score=None)]).values()
    assert judged.quality == Fraction(9, 10) * Fraction(2, 6)
    assert unjudged.quality == Fraction(1, 2) * Fraction(1, 5)


# --- sentences


def test_sentence__of_the_design__reads_so():
    summary = Summary(runs=12, worked_weight=96, total_weight=100, judge_sum=184, judged=2, latencies=[7600, 8400])
    assert sentence("data:crypto", summary) == "Tested for data:crypto: 92/100 over 12 runs · 96% ok · 8 s"


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        (Summary(runs=1), "Tested for x: 1 run"),
        (Summary(runs=2, total_weight=3, worked_weight=1), "Tested for x: 2 runs · 33% ok"),
        (Summary(runs=2, judged=2, judge_sum=101, latencies=[3, 4]), "Tested for x: 51/100 over 2 runs · 4 ms"),
        (Summary(runs=1, latencies=[999]), "Tested for x: 1 run · 999 ms"),
        (Summary(runs=1, latencies=[1000]), "Tested for x: 1 run · 1 s"),
    ],
)
def test_sentence__with_unknown_parts__leaves_them_out(summary, expected):
    assert sentence("x", summary) == expected


# --- which is best


def ids(matches):
    return [match.listing.service_id for match in matches]


def test_best__by_each_criterion_in_turn__breaks_the_ties_of_the_ones_before():
    good = Summary(runs=4, worked_weight=4, total_weight=4, judge_sum=80, judged=1, latencies=[10])
    fast, slow = replace(good, latencies=[5]), replace(good, latencies=[50])
    known = {("quote", "data:crypto"): good}

    def listing(number, task, summary=good, needs=known, price=10, rating=Fraction(1, 2)):
        return Listing(number, price, rating, needs, {("quote", task): summary})

    ranked = [
        listing(90, "bitcoin price", replace(good, runs=1)),  # the closest label comes before everything
        listing(80, "bitcoin spot price"),
        listing(70, "bitcoin spot price", replace(good, judge_sum=70)),
        listing(60, "bitcoin spot price", replace(good, judge_sum=70), price=11),
        listing(50, "bitcoin spot price", replace(good, judge_sum=70), price=11, rating=Fraction(1, 3)),
        listing(40, "bitcoin spot price", replace(fast, judge_sum=60), price=11),
        listing(30, "bitcoin spot price", replace(slow, judge_sum=60), price=11),
        listing(31, "bitcoin spot price", replace(slow, judge_sum=60), price=11),
        listing(20, "bitcoin spot price", needs={}),  # not for this need
        Listing(10, 99, Fraction(0), known, {}),  # for the need alone
        Listing(5, 1, Fraction(1), {}, {("quote", "weather"): good}),
        Listing(4, 2, Fraction(1), {}, {}),
    ]
    found = best(reversed(ranked), "bitcoin price", "data:crypto")
    assert ids(found) == ids_of(ranked)
    assert [match.label for match in found[-4:]] == ["bitcoin spot price", "data:crypto", None, None]
    assert [match.closeness for match in found[:2]] == [1, Fraction(2, 3)]


def ids_of(listings):
    return [listing.service_id for listing in listings]


@pytest.mark.parametrize(
    ("changes", "trusted"),
    [({}, True), ({"task": "bitcoin spot price"}, False), ({"worked": False}, False)],
)
def test_best__after_three_runs_of_one_label__trusts_it_where_they_worked(changes, trusted):
    found = [record(1), record(2), record(3)]
    (two,) = best(listings_of(found[:2], [1]), "prices of bitcoin", "")
    (three,) = best(listings_of([replace(one, **changes) for one in found], [1]), "prices of bitcoin", "")
    assert (two.is_trusted, three.is_trusted) == (False, trusted)


@given(records(), st.sampled_from(NEEDS), st.sampled_from(NEEDS))
def test_best__after_a_failure_for_another_need__is_the_same(found, asked, failed):
    assume(asked != failed)
    failure = record(99, need=failed, task="", worked=False, cost=0)
    before = best(listings_of(found), "", asked)
    after = best(listings_of([*found, failure]), "", asked)
    assert ids(after) == ids(before)


@given(records(), st.sampled_from(TASKS), st.sampled_from(["", *NEEDS]), st.integers(0, 20))
def test_best__with_one_more_listing__keeps_the_order_of_the_others(found, task, need, price):
    listings = listings_of(found)
    more = best([*listings, replace(listings[0], service_id=9, price=price)], task, need)
    assert [number for number in ids(more) if number != 9] == ids(best(listings, task, need))


@given(records(), st.sampled_from(TASKS), st.sampled_from(NEEDS))
def test_best__of_any_listings__puts_those_that_nobody_tried_last_by_price(found, task, need):
    listings = [replace(one, price=10 - one.service_id) for one in listings_of(found)]
    tried = [match.label is not None for match in best(listings, task, need)]
    assert tried == sorted(tried, reverse=True)
    untried = [match.listing.price for match in best(listings, task, need) if match.label is None]
    assert untried == sorted(untried)
