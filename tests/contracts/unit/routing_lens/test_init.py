import ape
import pytest

from tests.contracts.world import EMPTY, event


@pytest.mark.rule("RLENS-1")
def test_init__with_contracts__shows_and_logs_them(world):
    linked = [world.registry.address, world.manager.address, world.reputation.address]
    assert list(world.lens.contracts()) == linked
    logged = event(world.lens.creation_metadata.receipt, "LensDeployed")
    assert logged == dict(zip(("registry", "session_manager", "reputation"), linked, strict=True))


@pytest.mark.rule("RLENS-1")
@pytest.mark.parametrize(
    ("position", "reason"),
    [(0, "lens: empty registry"), (1, "lens: empty session manager"), (2, "lens: empty reputation")],
)
def test_init__with_an_empty_contract__reverts(world, position, reason):
    linked = [world.registry.address, world.manager.address, world.reputation.address]
    linked[position] = EMPTY
    with ape.reverts(reason):
        world.deployer.deploy(world.project.RoutingLens, *linked)
