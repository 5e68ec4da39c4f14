"""The committed figures hold: `python benchmarks/gas.py` writes them anew, and a rise is then in the diff."""

import json

import pytest

from benchmarks import gas, opcodes
from counterfoil.chain.artifacts import artifact

ZEROING = {"SessionManager.open_with_authorization", "SessionManager.withdraw"}


@pytest.fixture(scope="module")
def committed():
    return json.loads(gas.SNAPSHOT.read_text())


@pytest.fixture(scope="module")
def now():
    return gas.measured()


def figures(**calls):
    return {"calls": {name: {"first": 2 * cost, "steady": cost} for name, cost in calls.items()}, "bytes": {"A": 500}}


def test_gas__of_every_call__has_not_risen(committed, now):
    assert sorted(gas.flat(now)) == sorted(gas.flat(committed)), "run `python benchmarks/gas.py`"
    assert gas.risen(committed, now) == {}


def test_gas__of_the_table__is_the_snapshot(committed):
    assert gas.TABLE.read_text() == gas.rendered(committed)


@pytest.mark.parametrize("contract", gas.CONTRACTS)
def test_gas__of_every_call_that_changes_state__is_measured(committed, contract):
    changing = {
        part["name"]
        for part in artifact(contract).abi
        if part["type"] == "function" and part["stateMutability"] in ("nonpayable", "payable")
    }
    measured = {name.split(" (")[0] for name in committed["calls"]}
    assert changing == {name.split(".")[1] for name in measured if name.split(".")[0] == contract}


def test_size__of_every_contract__is_within_the_limit(now):
    assert set(now["bytes"]) == set(gas.CONTRACTS)
    assert max(now["bytes"].values()) <= gas.SIZE_LIMIT


def test_kinds__of_a_call__add_up_to_what_it_used(now):
    for name, costs in now["kinds"].items():
        assert sum(costs.values()) == now["calls"][name]["steady"]


def test_kinds__of_calls_that_free_no_storage__leave_nothing_unexplained(now):
    unexplained = {name: costs["refund"] for name, costs in now["kinds"].items() if name not in ZEROING}
    assert set(unexplained.values()) == {0}
    assert all(now["kinds"][name]["refund"] < 0 for name in ZEROING)


def test_risen__above_one_percent__names_the_figure_and_both_values():
    before = figures(open=10_000, settle=10_000)
    assert gas.risen(before, figures(open=10_100, settle=10_101)) == {
        "settle, first": (20_000, 20_202),
        "settle, steady": (10_000, 10_101),
    }


def test_risen__in_bytes__names_the_contract():
    now = figures() | {"bytes": {"A": 506}}
    assert gas.risen(figures(), now) == {"A, bytes": (500, 506)}


def test_rendered__with_an_aim__says_how_far_from_it():
    shown = figures(**{"SessionManager.settle": 63_000})
    shown["kinds"] = {"SessionManager.settle": dict.fromkeys(opcodes.KINDS, 0) | {"code": 63_000}}
    page = gas.rendered(shown)
    assert "| SessionManager.settle | 126,000 | 63,000 | 60,000 | +5.0% |" in page
    assert "| SessionManager.settle | 63,000 | 63,000 |" in page
    assert "| A | 500 | 2% |" in page
