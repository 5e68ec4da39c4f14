import pytest


@pytest.fixture(scope="session")
def world(project, chain):
    """The contracts with a DisputeCourt as the registry's court, and an arbiter."""
    from tests.contracts.world import World

    return World.deployed(project, chain, dispute_court=True)


@pytest.fixture
def session_id(world):
    """A session of `client` with service 1, settled at 300."""
    return world.settled()


@pytest.fixture
def dispute_id(world, session_id):
    """An open dispute over `session_id` with a claim of 400."""
    return world.dispute(session_id)
