import ape
import pytest

from tests.contracts.world import EMPTY, event


@pytest.mark.rule("EL-1")
def test_init__with_manager__shows_and_logs_it(world):
    assert world.experience.session_manager() == world.manager
    receipt = world.experience.creation_metadata.receipt
    assert event(receipt, "ExperienceDeployed") == {"session_manager": world.manager.address}


@pytest.mark.rule("EL-1")
def test_init__with_empty_manager__reverts(world):
    with ape.reverts("experience: empty session manager"):
        world.deployer.deploy(world.project.ExperienceLedger, EMPTY)
