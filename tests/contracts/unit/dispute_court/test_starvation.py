import pytest

from tests.contracts.unit.test_starvation import starve


@pytest.mark.rule("MOD-12", "DC-18")
@pytest.mark.parametrize("award", [0, 400])
def test_resolve__starved__decides_whole_or_not_at_all(world, dispute_id, award):
    def state():
        owed = world.court.credit_of(world.client), world.court.credit_of(world.operator)
        node = world.registry.nodes(1)
        return world.court.disputes(dispute_id).status, owed, node.stake, node.holds

    starve(world, world.court.resolve, [world.disputed(dispute_id), award], world.arbiter, state)


@pytest.mark.rule("MOD-12", "DC-12")
def test_open_dispute__starved__opens_whole_or_not_at_all(world, session_id):
    starve(
        world, world.court.open_dispute, [session_id, 400, "e"], world.client,
        lambda: (world.court.dispute_count(), world.registry.nodes(1).holds, world.token.balanceOf(world.court)),
    )  # fmt: skip
