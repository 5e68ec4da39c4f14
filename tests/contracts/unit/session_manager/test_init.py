import ape
import pytest

from tests.contracts.world import CHALLENGE_PERIOD, EMPTY, MAX_DURATION, MAX_SNAPSHOT_AGE, event


def deploy(world, token=None, registry=None, challenge=1, duration=1, age=1):
    return world.deployer.deploy(
        world.project.SessionManager,
        token or world.token,
        registry or world.registry,
        challenge,
        duration,
        age,
    )


@pytest.mark.rule("SM-1")
def test_init__with_parameters__shows_and_logs_them(world):
    assert list(world.manager.parameters()) == [
        world.token, world.registry, CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE,
    ]  # fmt: skip
    manager = deploy(world, challenge=2, duration=3, age=4)
    assert event(manager.creation_metadata.receipt, "ManagerDeployed") == {
        "payment_token": world.token.address,
        "registry": world.registry.address,
        "challenge_period": 2,
        "max_duration": 3,
        "max_snapshot_age": 4,
    }


@pytest.mark.rule("SM-2")
def test_init__with_largest_parameters__is_accepted(world):
    manager = deploy(world, challenge=2**32 - 1, duration=2**32 - 1, age=256)
    assert list(manager.parameters())[2:] == [2**32 - 1, 2**32 - 1, 256]


@pytest.mark.rule("SM-2")
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"token": EMPTY}, "sessions: empty payment token"),
        ({"registry": EMPTY}, "sessions: empty registry"),
        ({"challenge": 0}, "sessions: challenge period out of range"),
        ({"challenge": 2**32}, "sessions: challenge period out of range"),
        ({"duration": 0}, "sessions: max duration out of range"),
        ({"duration": 2**32}, "sessions: max duration out of range"),
        ({"age": 0}, "sessions: snapshot age out of range"),
        ({"age": 257}, "sessions: snapshot age out of range"),
    ],
)
def test_init__with_bad_parameter__reverts(world, arguments, reason):
    with ape.reverts(reason):
        deploy(world, **arguments)
