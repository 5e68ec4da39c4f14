import ape
import pytest

from tests.contracts.world import EMPTY, event


@pytest.mark.rule("RL-1")
def test_init__with_manager__shows_and_logs_it(world):
    assert world.reputation.session_manager() == world.manager
    receipt = world.reputation.creation_metadata.receipt
    assert event(receipt, "ReputationDeployed") == {"session_manager": world.manager.address}


@pytest.mark.rule("RL-1")
def test_init__with_empty_manager__reverts(world):
    with ape.reverts("reputation: empty session manager"):
        world.deployer.deploy(world.project.ReputationLedger, EMPTY)
