"""The rules of what to improve: pure, so every one is shown from a state that calls for it and one that does not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.cli.node_advice import (
    Improvement,
    ServiceStanding,
    Standing,
    highest_kept,
    improvements,
    why_not_routed,
)
from counterfoil.routing.lottery import Candidate, rank

SERVICE = ServiceStanding(
    service_id=7, category="data:x", price=100, active=True, routable=True, others=2, highest_kept=120
)
FINE = Standing(
    node_id=3, now=1000, stake=2_000_000, min_stake=1_000_000, stake_per_slot=500_000, unbonding=0, release_at=0,
    holds=0, active_sessions=1, rating_sum=160, rating_count=2, credit=0, services=(SERVICE,),
)  # fmt: skip

RULES = [
    (
        {"stake": 999_999},
        "The stake is 1 below the least one, so nobody is routed here.",
        "counterfoil node stake 3 1",
    ),
    (
        {"stake": 1_200_000, "min_stake": 0, "stake_per_slot": 1_500_000},
        "The stake pays for no session at a time.",
        "counterfoil node stake 3 300000",
    ),
    (
        {"stake": 2_100_000, "active_sessions": 4},
        (
            "All 4 slots are taken, which leaves a tenth of the weight: stake 400,000 for one more, and 500,000 for "
            "each further one."
        ),
        "counterfoil node stake 3 400000",
    ),
    (
        {"services": ()},
        "No service is listed, so nobody can come.",
        "counterfoil node list-service 3 --category ... --price ...",
    ),
    (
        {"services": (replace(SERVICE, active=False, routable=False),)},
        "Service 7 (data:x) is paused.",
        "counterfoil node resume-service 7",
    ),
    (
        {"services": (replace(SERVICE, price=121),)},
        (
            "Service 7 (data:x) asks 121, over 120% of its category's average, so the lottery drops it: the highest "
            "price that is kept is 120."
        ),
        "counterfoil node set-price 7 120",
    ),
    (
        {"rating_sum": 99},
        (
            "The rating is 49.5 of 100 over 2 ratings, less than the 50 that a new node starts with: see what agents "
            "found."
        ),
        "counterfoil service SERVICE_ID --experience",
    ),
    (
        {"unreachable": "Agents do not call the endpoint x: it is private"},
        "Agents do not call the endpoint x: it is private.",
        "counterfoil node set-endpoint 3 URL",
    ),
    (
        {"unbonding": 5000, "release_at": 1000},
        "5,000 of unbonded stake can be withdrawn now.",
        "counterfoil node withdraw 3",
    ),
    (
        {"credit": 1234},
        "1,234 of earnings can be withdrawn now.",
        "counterfoil node withdraw 3 --earnings",
    ),
]


def test_improvements__of_a_node_in_order__are_none():
    assert improvements(FINE) == []
    assert why_not_routed(FINE) is None


@pytest.mark.parametrize(("change", "sentence", "command"), RULES, ids=[" ".join(rule[0]) for rule in RULES])
def test_improvements__of_one_fault__are_its_sentence_and_command(change, sentence, command):
    assert improvements(replace(FINE, **change)) == [Improvement(sentence, command)]


@pytest.mark.parametrize(
    "change",
    [
        {"stake": 1_000_000},
        {"active_sessions": 3},
        {"services": (replace(SERVICE, price=120),)},
        {"services": (replace(SERVICE, price=10**30, highest_kept=None),)},
        {"rating_sum": 100},
        {"rating_sum": 0, "rating_count": 0},
        {"unbonding": 5000, "release_at": 1001},
        {"unbonding": 5000, "release_at": 1000, "holds": 1},
    ],
    ids=str,
)
def test_improvements__just_within_a_rule__are_none(change):
    assert improvements(replace(FINE, **change)) == []


def test_improvements__of_many_faults__come_in_the_order_of_the_rules():
    bad = replace(FINE, stake=0, services=(), rating_sum=0, unreachable="x", unbonding=1, credit=1)

    assert [found.command.removeprefix("counterfoil ") for found in improvements(bad)] == [
        "node stake 3 1000000",
        "node list-service 3 --category ... --price ...",
        "service SERVICE_ID --experience",
        "node set-endpoint 3 URL",
        "node withdraw 3",
        "node withdraw 3 --earnings",
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"stake": 5}, "its stake of 5 is below the least stake of 1,000,000"),
        ({"services": ()}, "it lists no service"),
        ({"services": (replace(SERVICE, active=False),)}, "every service of it is paused"),
        ({"services": (replace(SERVICE, active=False), SERVICE)}, None),
    ],
)
def test_why_not_routed__by_state__is_the_first_reason(change, why):
    assert why_not_routed(replace(FINE, **change)) == why


PRICES = st.lists(st.integers(0, 2**96 - 1), min_size=1, max_size=12)


@given(PRICES, st.integers(-3, 3))
def test_highest_kept__beside_others__is_where_the_lottery_begins_to_drop(others, step):
    price = highest_kept(others) + step
    if price < 0:
        return
    candidates = [Candidate(place, one, 1, 0, 0, 0, 1) for place, one in enumerate([price, *others], start=1)]

    assert (1 in rank(candidates, b"\0" * 32).dropped) == (step > 0)


def test_highest_kept__beside_nobody__is_any():
    assert highest_kept([]) is None
    assert rank([Candidate(1, 2**100, 1, 0, 0, 0, 1)], b"\0" * 32).kept == (1,)
