"""What can be called at all, and by whom: no owner, no pause, no upgrade, no setter that is not listed here."""

import json

import ape
import pytest

from tests.contracts.conftest import ROOT

ARTIFACTS = ROOT / "counterfoil" / "chain" / "artifacts"
CHANGING = {
    "NodeRegistry": {
        "register_node", "set_endpoint", "set_capability", "transfer_node", "accept_node", "add_stake",
        "request_unstake", "withdraw_stake", "list_service", "set_price", "set_active", "set_metadata", "slash",
        "hold", "release",
    },
    "SessionManager": {
        "open", "open_with_authorization", "top_up", "settle", "request_close", "finish_close", "expire", "withdraw",
    },
    "ReputationLedger": {"rate", "rate_by_signature"},
    "ExperienceLedger": {"attest", "attest_many"},
    "RoutingLens": set(),
    "DisputeCourt": {"open_dispute", "resolve", "drop", "withdraw", "offer_arbiter", "accept_arbiter"},
}  # fmt: skip


def abi(name):
    return json.loads((ARTIFACTS / f"{name}.json").read_text())["abi"]


@pytest.mark.rule("SM-43", "NR-28", "DC-28", "RLENS-9")
@pytest.mark.parametrize("name", CHANGING)
def test_functions__that_change_state__are_the_listed_ones_and_take_no_ether(name):
    changing = {
        entry["name"]
        for entry in abi(name)
        if entry["type"] == "function" and entry["stateMutability"] not in ("view", "pure")
    }
    assert changing == CHANGING[name]
    assert {entry["type"] for entry in abi(name)} <= {"constructor", "event", "function"}
    assert [entry for entry in abi(name) if entry.get("stateMutability") == "payable"] == []


@pytest.mark.rule("SM-43")
def test_ether__sent_to_a_contract__is_refused(world):
    contracts = (world.registry, world.manager, world.reputation, world.experience, world.lens)
    for contract in contracts:
        with ape.reverts():
            world.other.transfer(contract, 1)
        assert contract.balance == 0
