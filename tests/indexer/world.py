"""A real chain with the real contracts, driven by plain JSON-RPC and eth_abi."""

import itertools
import json
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from eth_abi import encode
from eth_account import Account
from eth_hash.auto import keccak
from eth_utils import to_checksum_address

from indexer.deployment import parse_deployment
from indexer.rpc import HttpRpc

ROOT = Path(__file__).resolve().parents[2]
ARTIFACTS = ROOT / "counterfoil" / "chain" / "artifacts"
NO_CAP = 2**256 - 1
ZERO = "0x" + "0" * 40
MIN_STAKE = 1000
SLOT = 500
CHAIN_ID = 31337


def artifact(name):
    return json.loads((ARTIFACTS / f"{name}.json").read_text())


@contextmanager
def anvil(*arguments):
    binary = next(ROOT.glob("node_modules/@foundry-rs/anvil-*/bin/anvil*"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [binary, "--silent", "--port", str(port), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _await_port(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _await_port(port, process):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise RuntimeError("anvil did not start")


def abi_type(item):
    if item["type"].startswith("tuple"):
        inner = ",".join(abi_type(part) for part in item["components"])
        return f"({inner})" + item["type"].removeprefix("tuple")
    return item["type"]


class Contract:
    def __init__(self, name, address):
        self.address = address
        entries = artifact(name)["abi"]
        self.functions = {
            entry["name"]: [abi_type(item) for item in entry["inputs"]]
            for entry in entries
            if entry["type"] == "function"
        }

    def data(self, function, *arguments):
        types = self.functions[function]
        selector = keccak(f"{function}({','.join(types)})".encode())[:4]
        return "0x" + (selector + encode(types, arguments)).hex()


class World:
    """Operators and clients are anvil's unlocked accounts; `key` signs vouchers."""

    def __init__(self, url):
        self.rpc = HttpRpc(url)
        self.url = url
        self.accounts = self.rpc.call("eth_accounts", [])
        self.key = Account.from_key("0x" + "11" * 32)
        self.names = {}
        self._gas = hex(6_000_000)

    def deploy(self):
        token = self._create("TestToken")
        registry = self._create("NodeRegistry", token, MIN_STAKE, SLOT, 10, ZERO)
        manager = self._create("SessionManager", token, registry, 60, 86400, 200)
        self._create("ReputationLedger", manager)
        self._create("ExperienceLedger", manager)
        for account in self.accounts:
            self.send(account, "TestToken", "mint", account, 10**12)
            self.send(account, "TestToken", "approve", registry, 10**12)
            self.send(account, "TestToken", "approve", manager, 10**12)
        return self

    def document(self):
        genesis = self.rpc.call("eth_getBlockByNumber", ["0x0", False])
        contracts = {name: entry for name, (_, entry) in self.names.items()}
        return {"version": 1, "chain_id": CHAIN_ID, "genesis_hash": genesis["hash"], "contracts": contracts}

    def deployment(self):
        return parse_deployment(self.document())

    def _create(self, name, *arguments):
        made = artifact(name)
        types = [item["type"] for entry in made["abi"] if entry["type"] == "constructor" for item in entry["inputs"]]
        data = made["bytecode"] + encode(types, arguments).hex()
        receipt = self._mined({"from": self.accounts[0], "data": data, "gas": self._gas})
        address = to_checksum_address(receipt["contractAddress"])
        code = self.rpc.call("eth_getCode", [address, "latest"])
        entry = {
            "address": address,
            "block": int(receipt["blockNumber"], 16),
            "block_hash": receipt["blockHash"],
            "transaction": receipt["transactionHash"],
            "arguments": {str(i): str(argument) for i, argument in enumerate(arguments)},
            "code_hash": "0x" + keccak(bytes.fromhex(code[2:])).hex(),
        }
        self.names[name] = (Contract(name, address), entry)
        return address

    def _mined(self, transaction):
        sent = self.rpc.call("eth_sendTransaction", [transaction])
        deadline = time.monotonic() + 20
        while (receipt := self.rpc.call("eth_getTransactionReceipt", [sent])) is None:  # anvil's receipts may lag
            assert time.monotonic() < deadline, "anvil did not mine"
        assert receipt["status"] == "0x1", receipt
        return receipt

    def send(self, account, name, function, *arguments):
        contract, _ = self.names[name]
        data = contract.data(function, *arguments)
        return self._mined({"from": account, "to": contract.address, "data": data, "gas": self._gas})

    def queue(self, account, name, function, *arguments):
        """Send without waiting: mined when the chain is told to."""
        contract, _ = self.names[name]
        data = contract.data(function, *arguments)
        return self.rpc.call(
            "eth_sendTransaction", [{"from": account, "to": contract.address, "data": data, "gas": self._gas}]
        )

    def node(self, account, stake=3000, category="data:crypto", price=10):
        """Register a node with one service; gives node_id and service_id."""
        receipt = self.send(account, "NodeRegistry", "register_node", "http://node.example", stake)
        node_id = int(receipt["logs"][0]["topics"][1], 16)
        for log in receipt["logs"]:
            if log["address"].lower() == self.names["NodeRegistry"][0].address.lower():
                node_id = int(log["topics"][1], 16)
        return node_id, self.list(account, node_id, category, price)

    def list(self, account, node_id, category="data:crypto", price=10):
        receipt = self.send(account, "NodeRegistry", "list_service", node_id, category, price, "ipfs://meta")
        return int(receipt["logs"][-1]["topics"][1], 16)

    def open(self, account, service_id, deposit=100):
        """Open a session pinned to a service, with the key as signer; gives its id."""
        head = self.rpc.call("eth_getBlockByNumber", ["latest", False])
        nonce = int(self.view("SessionManager", "draws", account), 16)
        choice = (0, nonce, 0, int(head["number"], 16), bytes.fromhex(head["hash"][2:]), NO_CAP, b"\x07" * 32)
        receipt = self.send(
            account, "SessionManager", "open", service_id, deposit, 10**6, 3600, self.key.address, choice
        )
        manager = self.names["SessionManager"][0].address.lower()
        return next(
            log["topics"][1] for log in receipt["logs"] if log["address"] == manager and len(log["topics"]) == 4
        )

    def view(self, name, function, *arguments):
        contract, _ = self.names[name]
        call = {"to": contract.address, "data": contract.data(function, *arguments)}
        return self.rpc.call("eth_call", [call, "latest"])

    def settle(self, operator, session_id, amount, calls=1):
        signature = self._sign_voucher(session_id, amount, calls) if amount else b""
        raw = bytes.fromhex(session_id[2:])
        return self.send(operator, "SessionManager", "settle", raw, amount, calls, signature)

    def _sign_voucher(self, session_id, amount, calls):
        domain = {
            "name": "Counterfoil",
            "version": "1",
            "chainId": CHAIN_ID,
            "verifyingContract": self.names["SessionManager"][0].address,
        }
        types = {"Voucher": [("sessionId", "bytes32"), ("amount", "uint256"), ("calls", "uint256")]}
        fields = {"Voucher": [{"name": name, "type": kind} for name, kind in types["Voucher"]]}
        message = {"sessionId": bytes.fromhex(session_id[2:]), "amount": amount, "calls": calls}
        return self.key.sign_typed_data(domain, fields, message).signature

    def mine(self, count=1):
        self.rpc.call("anvil_mine", [hex(count)])

    def reorg(self, depth):
        self.rpc.call("anvil_reorg", [depth, []])

    def head(self):
        return int(self.rpc.call("eth_blockNumber", []), 16)

    def traffic(self, rounds):
        """Let every part of the contracts speak, over and over."""
        operator, client, other = self.accounts[1:4]
        node_id, service_id = self.node(operator)
        for turn in itertools.islice(itertools.count(), rounds):
            session_id = self.open(client, service_id)
            paid = 20 * (turn % 2)
            self.settle(operator, session_id, paid, turn % 2)
            self.send(client, "ReputationLedger", "rate", bytes.fromhex(session_id[2:]), 60 + turn % 40)
            self.send(operator, "NodeRegistry", "set_price", service_id, 10 + turn)
            self.send(operator, "NodeRegistry", "add_stake", node_id, 100 + turn)
            self.open(other, service_id, deposit=50 + turn)
            if turn % 3 == 0:
                self.send(operator, "NodeRegistry", "set_active", service_id, turn % 2 == 0)
                self.send(operator, "NodeRegistry", "set_active", service_id, True)
        return node_id, service_id
