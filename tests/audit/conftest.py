import pytest

from counterfoil.audit.opening import open_auditor
from tests.support.busy import busy_world


@pytest.fixture(scope="session")
def busy(tmp_path_factory):
    with busy_world(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture
def auditor(busy):
    with open_auditor(busy.settings()) as made:
        yield made
