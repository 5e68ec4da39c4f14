"""The receipts root against py-trie and pyrlp, and against the headers of a real chain."""

import pytest
import rlp as pyrlp
from hypothesis import given, settings
from hypothesis import strategies as st
from trie import HexaryTrie

from indexer.errors import BadAnswerError
from indexer.receipts import UnknownReceiptError, ordered_root, receipts_root, rlp
from tests.indexer.model import trie_root
from tests.indexer.world import CHAIN_ID


def hexes(size):
    return st.binary(min_size=size, max_size=size).map(lambda raw: "0x" + raw.hex())


LOGS = st.fixed_dictionaries(
    {
        "address": hexes(20),
        "topics": st.lists(hexes(32), max_size=4),
        "data": st.binary(max_size=100).map(lambda raw: "0x" + raw.hex()),
    }
)
RECEIPTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["0x0", "0x1", "0x2", "0x3", "0x4"]),
        "status": st.sampled_from(["0x0", "0x1"]),
        "cumulativeGasUsed": st.integers(0, 2**40).map(hex),
        "logsBloom": hexes(256),
        "logs": st.lists(LOGS, max_size=3),
    }
)


@given(st.lists(RECEIPTS, max_size=20))
@settings(deadline=None, max_examples=40)
def test_receipts_root__of_any_receipts__is_py_tries(receipts):
    assert receipts_root(receipts) == trie_root(receipts)


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 127, 128, 129, 256, 257, 300])
@pytest.mark.parametrize("size", [1, 3, 31, 32, 33, 60])
def test_ordered_root__of_many_values__is_py_tries(count, size):
    values = [(at * 7919 + 1).to_bytes(size, "big") if size > 2 else bytes([1 + at % 200]) for at in range(count)]
    trie = HexaryTrie({})
    for at, value in enumerate(values):
        trie[pyrlp.encode(at)] = value
    assert ordered_root(values) == trie.root_hash


NESTED = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=5), max_leaves=20)


@given(NESTED)
def test_rlp__of_any_item__is_pyrlps(item):
    assert rlp(item) == pyrlp.encode(item)


def test_receipts_root__of_a_receipt_from_before_byzantium__holds_its_state_root():
    receipt = {
        "root": "0x" + "ab" * 32,
        "cumulativeGasUsed": "0x5208",
        "logsBloom": "0x" + "00" * 256,
        "logs": [],
    }
    encoded = pyrlp.encode([bytes.fromhex("ab" * 32), 0x5208, bytes(256), []])
    trie = HexaryTrie({})
    trie[pyrlp.encode(0)] = encoded
    assert receipts_root([receipt]) == "0x" + trie.root_hash.hex()


GOOD = {"type": "0x2", "status": "0x1", "cumulativeGasUsed": "0x1", "logsBloom": "0x" + "00" * 256, "logs": []}


@pytest.mark.parametrize("kind", ["0x5", "0x7e", "0x6a"])
def test_receipts_root__of_an_unknown_type__says_which(kind):
    with pytest.raises(UnknownReceiptError, match=kind):
        receipts_root([GOOD, GOOD | {"type": kind}])


@pytest.mark.parametrize(
    "change",
    [
        {"type": 2}, {"status": "yes"}, {"status": None}, {"cumulativeGasUsed": None}, {"logsBloom": "0x0"},
        {"logs": None}, {"logs": [5]}, {"logs": [{"address": "0x1", "topics": [], "data": "0x"}]},
        {"logs": [{"address": "0x" + "11" * 20, "topics": ["0x1"], "data": "0x"}]},
        {"logs": [{"address": "0x" + "11" * 20, "topics": [], "data": "0x1"}]},
    ],
)  # fmt: skip
def test_receipts_root__of_a_malformed_receipt__is_a_bad_answer(change):
    with pytest.raises(BadAnswerError):
        receipts_root([GOOD | change])


def test_receipts_root__of_too_many_receipts__is_a_bad_answer():
    with pytest.raises(BadAnswerError, match="over 100000 receipts"):
        receipts_root([GOOD] * 100_001)


def delegation(world):
    """A signed set code transaction (EIP-7702)."""
    world.rpc.call("anvil_setBalance", [world.key.address, hex(10**18)])
    target = world.names["NodeRegistry"][0].address
    allowed = world.key.sign_authorization({"chainId": CHAIN_ID, "address": target, "nonce": 1})
    transaction = {
        "chainId": CHAIN_ID,
        "nonce": 0,
        "to": world.key.address,
        "value": 0,
        "data": "0x",
        "gas": 200_000,
        "maxFeePerGas": 3 * 10**9,
        "maxPriorityFeePerGas": 1,
        "authorizationList": [allowed],
    }
    return "0x" + bytes(world.key.sign_transaction(transaction).raw_transaction).hex()


def test_receipts_root__on_a_real_chain__is_each_headers(world):
    """Blocks with legacy, access list, dynamic fee and set code transactions, one and many of them, failed ones too."""
    operator = world.accounts[1]
    world.traffic(1)
    registry = world.names["NodeRegistry"][0]
    call = {"from": operator, "to": registry.address, "gas": hex(400_000)}
    worked = call | {"data": registry.data("register_node", "http://a", 2000)}
    failed = call | {"data": registry.data("set_price", 99, 1)}
    entry = {"address": registry.address, "storageKeys": ["0x" + "00" * 32]}
    forms = [
        {"gasPrice": hex(3 * 10**9)},
        {"gasPrice": hex(3 * 10**9), "accessList": [entry]},
        {"maxFeePerGas": hex(3 * 10**9), "maxPriorityFeePerGas": "0x1"},
    ]
    world.rpc.call("evm_setAutomine", [False])
    for transaction in [worked | form for form in forms] + [failed | forms[0], worked | forms[2]] * 4:
        world.rpc.call("eth_sendTransaction", [transaction])
    world.rpc.call("eth_sendRawTransaction", [delegation(world)])
    world.mine()
    kinds, sizes = set(), set()
    for number in range(world.head() + 1):
        header = world.rpc.call("eth_getBlockByNumber", [hex(number), False])
        receipts = world.rpc.call("eth_getBlockReceipts", [hex(number)])
        assert receipts_root(receipts) == header["receiptsRoot"]
        kinds |= {(receipt["type"], receipt["status"]) for receipt in receipts}
        sizes.add(len(receipts))
    assert {kind for kind, _ in kinds} == {"0x0", "0x1", "0x2", "0x4"}
    assert ("0x0", "0x0") in kinds
    assert {0, 1, 12} <= sizes
