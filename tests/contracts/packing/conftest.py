"""Boa runs the packing module through its harness; no chain and no Ape."""

import boa
import pytest

from tests.contracts.conftest import ROOT


@pytest.fixture(scope="session")
def harness():
    """The packing module behind external functions."""
    return boa.load(str(ROOT / "contracts" / "testing" / "PackingHarness.vy"))
