import ape

from tests.contracts.world import EMPTY, event


def test_init__with_manager__shows_and_logs_it(world):
    assert world.reputation.session_manager() == world.manager
    receipt = world.reputation.creation_metadata.receipt
    assert event(receipt, "ReputationDeployed") == {"session_manager": world.manager.address}


def test_init__with_empty_manager__reverts(world):
    with ape.reverts("reputation: empty session manager"):
        world.deployer.deploy(world.project.ReputationLedger, EMPTY)
