"""The lottery module three ways: through a harness in boa, through the harness on anvil, and in the lens."""

import boa
import pytest

from tests.contracts.conftest import ROOT

TESTING = ROOT / "contracts" / "testing"


@pytest.fixture(scope="session")
def harness():
    """The module behind external functions, in boa."""
    return boa.load(str(TESTING / "LotteryHarness.vy"))


@pytest.fixture(scope="session")
def draw_harness():
    """The walk of a draw alone, in boa."""
    return boa.load(str(TESTING / "DrawHarness.vy"))
