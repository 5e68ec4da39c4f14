"""An in-memory chain that answers as a node does, so that a test can make it lie; and a naive reference of the fold."""

import json
from dataclasses import fields
from functools import lru_cache

import rlp
from eth_abi import encode
from eth_hash.auto import keccak
from eth_utils import to_checksum_address
from trie import HexaryTrie

from indexer import events as ev
from indexer import rows
from indexer.chain import bloom_bits
from indexer.deployment import parse_deployment
from indexer.source import Source

CHAIN_ID = 4242
CODE = "0x6001"
ADDRESSES = {name: "0x" + f"{number:02x}" * 20 for number, name in enumerate(ev.CONTRACTS, 0xA1)}
CONTRACT_OF = {event: name for name, events in ev.EVENTS.items() for event in events}
OPERATOR = "0x" + "0b" * 20
CLIENT = "0x" + "0c" * 20
COURT = "0x" + "0d" * 20


def digest(*parts):
    return "0x" + keccak(repr(parts).encode()).hex()


def encoded(event):
    """Topics and data of an event, by eth_abi."""
    topics, types, values = [ev.topic0(type(event))], [], []
    for argument in ev.arguments(type(event)):
        raw = value = getattr(event, argument.name)
        if argument.abi.type == "bytes32":
            value = bytes.fromhex(raw[2:])
        if argument.abi.indexed:
            topics.append("0x" + encode([argument.abi.type], [value]).hex())
        else:
            types.append(argument.abi.type)
            values.append(value)
    return topics, "0x" + encode(types, values).hex()


class Chain:
    """Blocks 0..; the contracts are deployed in block 1."""

    def __init__(self, min_stake=1000, stake_per_slot=500):
        self.blocks = []
        self._salt = 0
        self.append()
        self.append(
            ev.RegistryDeployed(OPERATOR, min_stake, stake_per_slot, 10, COURT),
            ev.ManagerDeployed(OPERATOR, ADDRESSES["NodeRegistry"], 60, 86400, 200),
            ev.ReputationDeployed(ADDRESSES["SessionManager"]),
            ev.ExperienceDeployed(ADDRESSES["SessionManager"]),
            ev.CourtDeployed(ADDRESSES["NodeRegistry"], ADDRESSES["SessionManager"], 5, 60, 120),
            ev.ArbiterChanged(COURT),
        )

    @property
    def head(self):
        return self.blocks[-1]["number"]

    def append(self, *events, logs=()):
        """Add a block; `events` are events of ours, `logs` are (address, topics, data)."""
        number = len(self.blocks)
        parent = self.blocks[-1]["hash"] if self.blocks else "0x" + "00" * 32
        placed = [(ADDRESSES[CONTRACT_OF[type(event)]], *encoded(event)) for event in events] + list(logs)
        self._salt += 1
        block_hash = digest("block", number, parent, self._salt)
        block = {
            "number": number,
            "hash": block_hash,
            "parent": parent,
            "timestamp": 1_000_000 + 12 * number,
            "events": list(events),
            "logs": [_log(number, block_hash, index, *log) for index, log in enumerate(placed)],
        }
        self.blocks.append(block)
        return number

    def rewind(self, number):
        """Forget every block above `number`."""
        del self.blocks[number + 1 :]

    def deployment(self):
        return parse_deployment(self.document())

    def document(self):
        block = self.blocks[1]
        entry = {
            "block": 1,
            "block_hash": block["hash"],
            "transaction": digest("deploy"),
            "arguments": {},
            "code_hash": "0x" + keccak(bytes.fromhex(CODE[2:])).hex(),
        }
        contracts = {name: {"address": to_checksum_address(address), **entry} for name, address in ADDRESSES.items()}
        return {"version": 1, "chain_id": CHAIN_ID, "genesis_hash": self.blocks[0]["hash"], "contracts": contracts}


def _log(number, block_hash, index, address, topics, data):
    return {
        "address": address,
        "topics": list(topics),
        "data": data,
        "blockNumber": hex(number),
        "blockHash": block_hash,
        "transactionHash": digest("tx", block_hash, index),
        "transactionIndex": hex(index),
        "logIndex": hex(index),
        "removed": False,
    }


@lru_cache(maxsize=1 << 16)
def bits_of(text):
    return bloom_bits(bytes.fromhex(text[2:]))


def bloom(logs):
    bits = 0
    for log in logs:
        for text in (log["address"], *log["topics"]):
            bits |= bits_of(text)
    return f"0x{bits:0512x}"


def raw(text):
    return bytes.fromhex(text[2:])


def receipts_of(block):
    """A receipt for each log, as dynamic fee transactions would give them."""
    return [
        {
            "type": "0x2",
            "status": "0x1",
            "cumulativeGasUsed": hex(50_000 * (index + 1)),
            "logsBloom": bloom([log]),
            "logs": [log],
            "blockHash": block["hash"],
            "blockNumber": hex(block["number"]),
            "transactionHash": log["transactionHash"],
            "transactionIndex": hex(index),
        }
        for index, log in enumerate(block["logs"])
    ]


def trie_root(receipts):
    """The receipts root by py-trie and pyrlp, for receipts with a status."""
    trie = HexaryTrie({})
    for index, receipt in enumerate(receipts):
        logs = [
            [raw(log["address"]), [raw(topic) for topic in log["topics"]], raw(log["data"])] for log in receipt["logs"]
        ]
        payload = [int(receipt["status"], 16), int(receipt["cumulativeGasUsed"], 16), raw(receipt["logsBloom"]), logs]
        kind = int(receipt["type"], 16)
        trie[rlp.encode(index)] = (bytes([kind]) if kind else b"") + rlp.encode(payload)
    return "0x" + trie.root_hash.hex()


@lru_cache(maxsize=1 << 13)
def remembered_root(receipts):
    """The root of receipts as JSON: the same chains come again and again, and py-trie is slow."""
    return trie_root(json.loads(receipts))


class Node:
    """Answers from a Chain. `faults` maps a method to a function (answer, params) -> answer, which may also raise."""

    where = "memory"
    received = 0

    def __init__(self, chain):
        self.chain = chain
        self.faults = {}
        self.calls = []
        self.finality = 64

    def call(self, method, params):
        self.calls.append((method, params))
        answer = getattr(self, method)(*params)
        fault = self.faults.get(method)
        return fault(answer, params) if fault else answer

    def batch(self, calls):
        return [self.call(method, params) for method, params in calls]

    def asked(self, method):
        return [params for name, params in self.calls if name == method]

    def eth_chainId(self):
        return hex(CHAIN_ID)

    def eth_getCode(self, address, _tag):
        return CODE if address.lower() in ADDRESSES.values() else "0x"

    def eth_blockNumber(self):
        return hex(self.chain.head)

    def eth_getBlockByNumber(self, tag, _full):
        below = {"latest": 0, "safe": self.finality // 2, "finalized": self.finality}
        named = {name: max(0, self.chain.head - depth) for name, depth in below.items()}
        number = named[tag] if tag in named else int(tag, 16)
        if number > self.chain.head:
            return None
        block = self.chain.blocks[number]
        return {
            "number": hex(number),
            "hash": block["hash"],
            "parentHash": block["parent"],
            "timestamp": hex(block["timestamp"]),
            "logsBloom": bloom(block["logs"]),
            "receiptsRoot": self._root(block),
            "transactions": [log["transactionHash"] for log in block["logs"]],
        }

    @staticmethod
    def _root(block):
        if "root" not in block:
            block["root"] = remembered_root(json.dumps(receipts_of(block)))
        return block["root"]

    def eth_getLogs(self, wanted):
        if "blockHash" in wanted:
            return [log for block in self.chain.blocks if block["hash"] == wanted["blockHash"] for log in block["logs"]]
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        return [
            log
            for block in self.chain.blocks[first : last + 1]
            for log in block["logs"]
            if log["address"] in wanted["address"]
        ]

    def eth_getBlockReceipts(self, tag):
        number = int(tag, 16)
        return receipts_of(self.chain.blocks[number]) if number <= self.chain.head else None

    def eth_getTransactionReceipt(self, tx_hash):
        receipts = (receipt for block in self.chain.blocks for receipt in receipts_of(block))
        return next((receipt for receipt in receipts if receipt["transactionHash"] == tx_hash), None)


# --- events with little effort


def registered(node_id, stake=5000, operator=OPERATOR):
    return [
        ev.NodeRegistered(node_id, operator, f"http://node-{node_id}"),
        ev.StakeChanged(node_id, stake, 0, 0),
    ]


def listed(service_id, node_id, category="data:crypto", price=10):
    category_id = "0x" + keccak(category.encode()).hex()
    return ev.ServiceListed(service_id, node_id, category_id, category, price, f"ipfs://{service_id}")


def session_id(number):
    return digest("session", number)


def opened(number, node_id=1, service_id=1, client=CLIENT, **other):
    values = {
        "session_id": session_id(number),
        "client": client,
        "service_id": service_id,
        "node_id": node_id,
        "operator": OPERATOR,
        "signer": client,
        "price": 10,
        "max_price": 2**256 - 1,
        "deposit": 100,
        "expires_at": 2_000_000,
        "policy": 1,
        "nonce": number,
        "attempt": 0,
        "snapshot_block": 1,
        "snapshot_hash": digest("snapshot"),
        "draw_seed": digest("seed"),
        "price_cap": 2**256 - 1,
        "decision": digest("decision"),
    }
    return ev.SessionOpened(**values | other)


def settled(number, node_id=1, paid=40, refunded=60, calls=4, client=CLIENT):
    return ev.SessionSettled(session_id(number), node_id, client, paid, refunded, calls)


def rated(number, node_id=1, score=80, paid=40, counted=True, service_id=1):
    return ev.SessionRated(session_id(number), node_id, CLIENT, service_id, score, paid, counted)


def disputed(number, node_id=1, claim=70, evidence="ipfs://e"):
    return ev.DisputeOpened(number, session_id(number), node_id, CLIENT, claim, 5, evidence)


def resolved(number, status=2, award=60, node_id=1):
    return ev.DisputeResolved(number, session_id(number), node_id, status, award)


def attested(number, service_id=1, tool="curl", need="price", note="fine", **other):
    values = {
        "session_id": session_id(number),
        "service_id": service_id,
        "need_id": "0x" + keccak(need.encode()).hex(),
        "tool": tool,
        "need": need,
        "task": "bitcoin price",
        "worked": True,
        "calls": 3,
        "failures": 1,
        "judge_score": 255,
        "latency_ms": 800,
        "cost": 30,
        "message": "",
        "note": note,
    }
    return ev.ExperienceAttested(**values | other)


# --- what the store holds, to compare


class MemoryState:
    """The simplest reader of current rows: a dictionary."""

    def __init__(self):
        self.rows = {}
        self.opened = 0

    def get(self, row_type, key):
        return self.rows.get((row_type, key))

    def session_count(self):
        return self.opened

    def apply(self, changes):
        for row in changes.versions:
            place = (type(row), rows.key_of(row))
            self.opened += isinstance(row, rows.Session) and place not in self.rows
            self.rows[place] = row


def row_dict(row):
    return {field.name: getattr(row, field.name) for field in fields(row)}


def load(writer, chain, first=1, last=None):
    """Write blocks of an in-memory chain, without the loop."""
    fetched = Source(Node(chain), writer.deployment).fetch(first, chain.head if last is None else last)
    writer.append(fetched.headers, fetched.logs, None)


def other_chain():
    chain = Chain()
    chain.rewind(0)
    chain.append(ev.ReputationDeployed(CLIENT))
    return chain
