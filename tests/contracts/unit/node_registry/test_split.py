import pytest

from tests.contracts.world import CATEGORY_ID, MIN_STAKE, NO_CAP


@pytest.mark.rule("NR-21", "NR-25")
def test_split__of_one_stake_over_nodes_below_the_minimum__routes_none_of_them(world):
    """One stake of the minimum routes one node; the same stake over many identities routes nobody."""
    whole = world.service(world.node(stake=MIN_STAKE))
    parts = [world.service(world.node(stake=MIN_STAKE // 4)) for _ in range(4)]
    assert world.registry.is_routable(whole) is True
    assert [world.registry.is_routable(part) for part in parts] == [False] * 4


@pytest.mark.rule("RLENS-5")
def test_split__of_one_stake_over_two_routable_nodes__is_measured(world):
    """
    Splitting is not barred where each part has the minimum: two halves weigh more together than the whole, by the two
    base reputations. The lens shows it, and readers weigh it.
    """
    whole = world.service(world.node(stake=4 * MIN_STAKE))
    halves = [world.service(world.node(stake=2 * MIN_STAKE)) for _ in range(2)]
    _, terms = world.lens.weights(CATEGORY_ID, NO_CAP)
    weights = {term.service_id: term.weight for term in terms}
    assert weights[whole] < sum(weights[half] for half in halves) < 2 * weights[whole]
