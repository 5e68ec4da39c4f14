"""One chain for the tests of a module, with a node in front of an upstream whose behaviour they set."""

import pytest

from tests.support.caller import Caller
from tests.support.market import market
from tests.support.upstream import echo, upstream


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with market(tmp_path_factory.mktemp("node")) as built:
        yield built


@pytest.fixture(scope="module")
def service(scene):
    """The upstream of olga's node, whose service is `scene.service_id`."""
    with upstream() as made:
        scene.service_id = scene.node("olga", upstream=made.url)
        yield made


@pytest.fixture
def up(service):
    """That upstream, as it is at first."""
    service.got.clear()
    service.behave = echo
    return service


@pytest.fixture
def caller(scene, up):
    """A session with olga's node."""
    return Caller(scene.world, scene.service_id)
