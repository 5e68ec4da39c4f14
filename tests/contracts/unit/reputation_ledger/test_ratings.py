"""Which ratings count, and how far their weights grow (design section 3)."""

import pytest

from tests.contracts.world import entry, event

MAX_WEIGHT = 2**121


def rate(world, paid, score=50):
    """Settle a session at `paid`, rate it, and say whether it counted."""
    session_id = world.settled(paid, 1 if paid else 0)
    receipt = world.reputation.rate(session_id, score, sender=world.client)
    return event(receipt, "SessionRated")["counted"]


@pytest.mark.rule("RL-10", "RL-12")
def test_ratings__unpaid__count_three_times_and_are_recorded_later(world):
    assert [rate(world, 0, 10) for _ in range(5)] == [True, True, True, False, False]
    assert list(world.reputation.ratings(1)) == [30, 3, 3, 0, 0]


@pytest.mark.rule("RL-3", "RL-10")
def test_ratings__uncounted__is_stored_and_still_once(world):
    for _ in range(3):
        rate(world, 0)
    session_id = world.settled(0, 0)
    world.reputation.rate(session_id, 99, sender=world.client)
    assert list(world.reputation.score_of(session_id)) == [True, 99]
    assert list(world.reputation.ratings(1)) == [150, 3, 3, 0, 0]


@pytest.mark.rule("RL-10")
def test_ratings__unpaid__count_up_to_three_more_than_the_paid(world):
    outcome = [rate(world, paid) for paid in (0, 0, 0, 0, 100, 0, 0, 100, 100, 0, 0, 0)]
    assert outcome == [True, True, True, False, True, True, False, True, True, True, True, False]
    assert list(world.reputation.ratings(1)) == [50 * 9, 9, 6, 300, 15_000]


@pytest.mark.rule("RL-9", "RL-10")
def test_ratings__unpaid_on_one_node__do_not_use_up_the_other(world):
    for _ in range(4):
        rate(world, 0)
    session_id = world.settled(0, 0, service_id=2)
    receipt = world.reputation.rate(session_id, 5, sender=world.client)
    assert event(receipt, "SessionRated")["counted"] == 1
    assert list(world.reputation.ratings(2)) == [5, 1, 1, 0, 0]


@pytest.mark.rule("RL-11")
@pytest.mark.parametrize(("held", "grows"), [(MAX_WEIGHT - 301, True), (MAX_WEIGHT - 300, False)])
def test_ratings__near_the_largest_weight__grow_or_stay_together(world, held, grows):
    slot = world.slot_of("ReputationLedger", "weights")
    world.store(world.reputation, entry(slot, b"\1"), held)
    assert rate(world, 300, 100) == 1
    expected = [held + 300, 30_000] if grows else [held, 0]
    assert list(world.reputation.ratings(1)) == [100, 1, 0, *expected]


@pytest.mark.rule("RL-11")
def test_ratings__of_one_payment_above_the_largest_weight__count_without_weight(world):
    world.token.mint(world.client, MAX_WEIGHT, sender=world.deployer)
    session_id = world.open(deposit=MAX_WEIGHT)
    world.settle(session_id, MAX_WEIGHT, 1)
    world.reputation.rate(session_id, 100, sender=world.client)
    assert list(world.reputation.ratings(1)) == [100, 1, 0, 0, 0]


@pytest.mark.rule("RL-13")
def test_ratings__of_unknown_node__are_zero(world):
    assert list(world.reputation.ratings(99)) == [0, 0, 0, 0, 0]
