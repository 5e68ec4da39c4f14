import pytest
from ape.exceptions import ProviderError

from tests.contracts.world import (
    BOND,
    CHALLENGE_PERIOD,
    DISPUTE_WINDOW,
    EMPTY,
    MAX_DURATION,
    MAX_SNAPSHOT_AGE,
    RESOLVE_WINDOW,
    address_after,
    event,
)


def registry_for(world, period, after=1):
    """A registry whose court is what the deployer deploys after so many more contracts."""
    court = address_after(world.deployer, after + 1)
    return world.deployer.deploy(world.project.NodeRegistry, world.token, 1, 1, period, court)


def manager_for(world, registry, challenge=CHALLENGE_PERIOD, duration=MAX_DURATION):
    return world.deployer.deploy(
        world.project.SessionManager, world.token, registry, challenge, duration, MAX_SNAPSHOT_AGE
    )


def arguments_for(world, period=2**32 - 1, **changes):
    """The arguments of a court with a registry and a manager that know it."""
    registry = registry_for(world, period)
    return {"registry": registry, "session_manager": manager_for(world, registry), **changes}


def deploy(world, **changes):
    """A registry, a manager and their court."""
    return world.deploy_court(**arguments_for(world, **changes))


def refuse(world, reason, arguments):
    """
    Ask the chain what the deployment would say. A deployment that failed would be asked again by Ape for its reason, at
    the deployer's next nonce, where the court has another address.
    """
    data = world.project.DisputeCourt(*world.court_arguments(**arguments)).data
    request = {"from": world.deployer.address, "data": "0x" + bytes(data).hex()}
    with pytest.raises(ProviderError, match=f"^execution reverted: {reason}$"):
        world.chain.provider.make_request("eth_call", [request, "latest"])


@pytest.mark.rule("DC-1")
def test_init__with_parameters__shows_and_logs_them(world):
    fixed = [world.registry, world.manager, world.token, BOND, DISPUTE_WINDOW, RESOLVE_WINDOW]
    assert list(world.court.parameters()) == fixed
    assert (world.court.arbiter(), world.court.pending_arbiter()) == (world.arbiter, EMPTY)
    receipt = world.court.creation_metadata.receipt
    assert event(receipt, "CourtDeployed") == {
        "registry": world.registry.address,
        "session_manager": world.manager.address,
        "bond": BOND,
        "dispute_window": DISPUTE_WINDOW,
        "resolve_window": RESOLVE_WINDOW,
    }
    assert event(receipt, "ArbiterChanged") == {"arbiter": world.arbiter.address}


@pytest.mark.rule("DC-2")
def test_init__with_registry_of_another_court__reverts(world):
    refuse(world, "court: registry names another court", {})
    registry = registry_for(world, 2**32 - 1, after=2)
    arguments = {"registry": registry, "session_manager": manager_for(world, registry)}
    refuse(world, "court: registry names another court", arguments)


@pytest.mark.rule("DC-3")
def test_init__with_sessions_of_another_registry__reverts(world):
    registry = registry_for(world, 2**32 - 1, after=0)
    refuse(world, "court: sessions of another registry", {"registry": registry})


@pytest.mark.rule("DC-4")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"arbiter": EMPTY}, "court: empty arbiter"),
        ({"bond": 2**128}, "court: bond too large"),
        ({"dispute_window": 0}, "court: dispute window out of range"),
        ({"dispute_window": 2**32}, "court: dispute window out of range"),
        ({"resolve_window": 0}, "court: resolve window out of range"),
        ({"resolve_window": 2**32}, "court: resolve window out of range"),
    ],
)
def test_init__with_bad_parameter__reverts(world, changes, reason):
    refuse(world, reason, arguments_for(world, **changes))


@pytest.mark.rule("DC-4")
def test_init__with_extreme_parameters__is_accepted(world):
    court = deploy(world, bond=2**128 - 1, dispute_window=1, resolve_window=2**32 - 1)
    assert list(court.parameters())[3:] == [2**128 - 1, 1, 2**32 - 1]
    assert list(deploy(world, bond=0, resolve_window=1).parameters())[3:] == [0, DISPUTE_WINDOW, 1]


@pytest.mark.rule("DC-5")
def test_init__with_unbonding_period_as_long_as_the_windows__reverts_one_longer_is_accepted(world):
    windows = MAX_DURATION + CHALLENGE_PERIOD + DISPUTE_WINDOW
    for period in (0, windows - 1, windows):
        refuse(world, "court: unbonding period too short", arguments_for(world, period))
    assert deploy(world, period=windows + 1).arbiter() == world.arbiter
