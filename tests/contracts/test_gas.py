"""What the hot calls cost in the steady state, from receipts, against the committed figures.

`COUNTERFOIL_WRITE_GAS=1 pytest tests/contracts/test_gas.py` writes `gas.json` anew: a rise is then in the diff.
"""

import json
import os
from pathlib import Path

import pytest

from tests.contracts.world import CHALLENGE_PERIOD, Record

SNAPSHOT = Path(__file__).parent / "gas.json"
TOLERANCE_PERCENT = 1


def warmed(world):
    """Let everybody have credit left and every counter be above zero, as in the steady state."""
    for client in (world.client, world.other):
        world.reputation.rate(world.settled(client=client), 80, sender=client)
    rich = world.open(deposit=100_000)
    world.settle(rich, 300, 3)
    world.manager.withdraw(world.other, sender=world.other)
    world.open(deposit=500)


def measured(world):
    """The gas of each call, by name. `open` is a returning client's, `open_with_transfer` one without credit."""
    warmed(world)
    gas = {}

    def note(name, receipt):
        gas[name] = receipt.gas_used
        return receipt

    note("register_node", world.registry.register_node("http://node", 5_000, sender=world.operator))
    note("open_with_transfer", world.open_receipt(client=world.other))
    opened = note("open", world.open_receipt())
    session_id = bytes(opened.events[0].session_id)
    note("top_up", world.manager.top_up(session_id, 500, sender=world.other))
    note("settle", world.settle(session_id, 300, 3))
    note("rate", world.reputation.rate(session_id, 80, sender=world.client))
    record = Record(session_id)
    note("attest", world.experience.attest(record, world.signed_record(record), sender=world.client))
    closing = world.open()
    note("request_close", world.manager.request_close(closing, sender=world.client))
    world.at(world.now() + CHALLENGE_PERIOD)
    note("finish_close", world.manager.finish_close(closing, sender=world.client))
    note("withdraw", world.manager.withdraw(world.operator, sender=world.operator))
    return gas


def risen(before, now):
    """The calls that cost more than the tolerance above their figure."""
    return {
        name: (before[name], figure)
        for name, figure in now.items()
        if figure * 100 > before[name] * (100 + TOLERANCE_PERCENT)
    }


@pytest.fixture
def gas(world, isolated):
    return measured(world)


def test_gas__of_hot_calls__has_not_risen(gas):
    if os.environ.get("COUNTERFOIL_WRITE_GAS"):
        SNAPSHOT.write_text(json.dumps(gas, indent=1, sort_keys=True) + "\n")
    before = json.loads(SNAPSHOT.read_text())
    assert sorted(gas) == sorted(before)
    assert risen(before, gas) == {}


def test_risen__above_one_percent__names_the_call_and_both_figures():
    before = {"open": 1_000, "settle": 1_000, "rate": 1_000}
    assert risen(before, {"open": 1_010, "settle": 1_011, "rate": 500}) == {"settle": (1_000, 1_011)}
