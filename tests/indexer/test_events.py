"""The declarations of events against the contracts' exported ABIs."""

import pytest
from eth_hash.auto import keccak

from indexer import events as ev
from tests.indexer.world import artifact


@pytest.mark.parametrize("contract", ev.CONTRACTS)
def test_events__compared_with_the_exported_abi__are_the_same(contract):
    exported = {
        entry["name"]: [(item["name"], item["type"], item["indexed"]) for item in entry["inputs"]]
        for entry in artifact(contract)["abi"]
        if entry["type"] == "event"
    }
    declared = {
        event.__name__: [(item.name, item.abi.type, item.abi.indexed) for item in ev.arguments(event)]
        for event in ev.EVENTS[contract]
    }
    assert declared == exported


def test_signature__of_an_event__is_canonical():
    assert ev.signature(ev.NodeRegistered) == "NodeRegistered(uint256,address,string)"
    assert ev.topic0(ev.PriceChanged) == "0x" + keccak(b"PriceChanged(uint256,uint256)").hex()


def test_topic0__over_all_events__is_unique():
    topics = [ev.topic0(event) for events in ev.EVENTS.values() for event in events]
    assert len(topics) == len(set(topics)) == 29
