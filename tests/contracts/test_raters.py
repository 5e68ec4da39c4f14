"""Many raters (boa): no array grows, and free ratings move a node no further than the rule says."""

import boa
import pytest
from eth_utils import to_checksum_address

from tests.contracts.conftest import ROOT
from tests.contracts.world import EMPTY, NO_CAP

PREVIOUS = """
@external
@view
def previous() -> bytes32:
    return blockhash(block.number - 1)
"""
SETTLED = """
struct Settlement:
    client: address
    operator: address
    service_id: uint256
    node_id: uint256
    settled: bool
    settled_at: uint256
    paid: uint256
    calls: uint256


@external
@view
def settlement_of(session_id: bytes32) -> Settlement:
    client: address = convert(convert(session_id, uint256) + 2 ** 150, address)
    operator: address = convert(7, address)
    return Settlement(
        client=client, operator=operator, service_id=1, node_id=1, settled=True, settled_at=1, paid=10, calls=1
    )
"""


def load(name, *arguments):
    return boa.load(str(ROOT / "contracts" / f"{name}.vy"), *arguments)


def account(number):
    return to_checksum_address((2**150 + number).to_bytes(20, "big"))


@pytest.mark.rule("RL-14")
def test_rate__by_2000_clients__counts_each_and_the_last_costs_what_the_second_did():
    with boa.env.anchor():
        ledger = load("ReputationLedger", boa.loads(SETTLED))
        gas = {}
        for number in range(1, 2_001):
            session_id = number.to_bytes(32, "big")
            ledger.rate(session_id, number % 101, sender=account(number))
            if number in (2, 2_000):
                gas[number] = ledger._computation.get_gas_used()
        total = sum(number % 101 for number in range(1, 2_001))
        assert tuple(ledger.ratings(1)) == (total, 2_000, 0, 20_000, 10 * total)
        assert abs(gas[2_000] - gas[2]) < 100


@pytest.fixture
def market():
    """A node that serves for nothing, and its ledger."""
    with boa.env.anchor():
        token = load("testing/TestToken")
        registry = load("NodeRegistry", token, 0, 1, 1, EMPTY)
        manager = load("SessionManager", token, registry, 100, 1_000, 10)
        ledger = load("ReputationLedger", manager)
        operator = boa.env.generate_address()
        registry.register_node("http://node", 0, sender=operator)
        registry.list_service(1, "data:x", 0, "", sender=operator)
        yield manager, ledger, operator, boa.loads(PREVIOUS)


@pytest.mark.rule("RL-10")
def test_rate__by_100_fresh_clients_that_paid_nothing__moves_a_node_by_three_ratings(market):
    manager, ledger, operator, blocks = market
    for number in range(1, 101):
        client = account(number)
        choice = (1, 0, 0, boa.env.evm.patch.block_number - 1, blocks.previous(), NO_CAP, b"\1" * 32)
        session_id = manager.open(1, 0, 0, 1, EMPTY, choice, sender=client)
        manager.settle(session_id, 0, 0, b"", sender=operator)
        ledger.rate(session_id, 100, sender=client)
        assert tuple(ledger.score_of(session_id)) == (True, 100)
        counted = min(number, 3)
        assert tuple(ledger.ratings(1)) == (100 * counted, counted, counted, 0, 0)
    assert manager.active_sessions(1) == 0


@pytest.mark.rule("MOD-10")
def test_domain__when_the_chain_forks_to_another_id__is_another(market):
    manager, ledger, _, _ = market
    before = manager.domain_separator(), ledger.domain_separator()
    held = boa.env.evm.patch.chain_id
    try:
        boa.env.evm.patch.chain_id = held + 1
        after = manager.domain_separator(), ledger.domain_separator()
    finally:
        boa.env.evm.patch.chain_id = held
    assert len({*before, *after}) == 4
    assert before == (manager.domain_separator(), ledger.domain_separator())
