"""The driver; and the profiles of the stateful test, which Hypothesis has to know before any test is collected."""

import pytest

from tests.contracts.stateful import profiles
from tests.contracts.stateful.driver import Driver

profiles.register()


@pytest.fixture
def driver():
    driver = Driver()
    yield driver
    driver.undo.__exit__(None, None, None)
