"""A chain on which every block is the same in every run, with the contracts and the people who call them.

Gas depends on the zero bytes of what is sent, so keys, addresses, times and with them all hashes are fixed: two runs
give equal figures.
"""

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak
from rlp import encode as rlp_encode
from web3 import Web3
from web3.contract.contract import ContractConstructor, ContractFunction
from web3.types import RPCEndpoint, TxParams, TxReceipt, Wei

from counterfoil.chain.artifacts import Artifact, artifact
from counterfoil.chain.provider import BoundedProvider
from counterfoil.demo.stage import anvil_binary

GENESIS = 1_800_000_000
HARDFORK = "prague"
CALL_GAS = 10_000_000
GAS_PRICE = Wei(10**10)
MINTED = 10**15
NOBODY = "0x" + "0" * 40
NO_CAP = 2**256 - 1
PRICE = 20_000
DEPOSIT = 2_000_000
STAKE = 5_000_000_000
MIN_STAKE = 1_000_000_000
STAKE_PER_SLOT = 500_000_000
CHALLENGE_PERIOD = 3_600
MAX_DURATION = 86_400
DISPUTE_WINDOW = 172_800
RESOLVE_WINDOW = 1_209_600
UNBONDING_PERIOD = 604_800
BOND = 50_000_000
ROLES = ("deployer", "operator", "client", "relayer", "arbiter", "heir", "bailiff")

VOUCHER = {"Voucher": [("sessionId", "bytes32"), ("amount", "uint256"), ("calls", "uint256")]}
RATING = {"Rating": [("sessionId", "bytes32"), ("score", "uint8")]}
EXPERIENCE = {
    "Experience": [
        ("sessionId", "bytes32"), ("tool", "string"), ("need", "string"), ("task", "string"), ("worked", "bool"),
        ("calls", "uint32"), ("failures", "uint32"), ("judgeScore", "uint8"), ("latencyMs", "uint32"),
        ("cost", "uint256"), ("message", "string"), ("note", "string"),
    ]
}  # fmt: skip
AUTHORIZATION = {
    "ReceiveWithAuthorization": [
        ("from", "address"), ("to", "address"), ("value", "uint256"), ("validAfter", "uint256"),
        ("validBefore", "uint256"), ("nonce", "bytes32"),
    ]
}  # fmt: skip


Source = Callable[[str], Artifact]


@contextmanager
def anvil() -> Iterator[str]:
    """Run anvil until the block ends, and give its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [anvil_binary(), "--silent", "--port", str(port), "--accounts", "0", "--hardfork", HARDFORK]
    command += ["--timestamp", str(GENESIS), "--steps-tracing"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=10)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(500):
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        try:
            process.wait(timeout=0.02)
        except subprocess.TimeoutExpired:
            continue
        break
    raise RuntimeError("anvil did not start; run it by hand to see why")


class Stage:
    """The deployed contracts, by name, and the accounts, by role."""

    def __init__(self, url: str, source: Source = artifact) -> None:
        self.web3 = Web3(BoundedProvider(url))
        self.source = source
        self.people = {role: Account.from_key(keccak(text=role)) for role in ROLES}
        self.contracts: dict[str, Any] = {}
        self.now = GENESIS
        for account in self.people.values():
            self.rpc("anvil_setBalance", account.address, hex(10**24))
            self.rpc("anvil_impersonateAccount", account.address)
        self._deploy_all()
        self._fund_all()

    def rpc(self, method: str, *parameters: object) -> Any:  # noqa: ANN401 - whatever the method gives
        """Ask the chain."""
        answer = self.web3.provider.make_request(RPCEndpoint(method), list(parameters))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def address(self, role: str) -> str:
        """Whose address a role has."""
        return str(self.people[role].address)

    def pass_time(self, seconds: int) -> None:
        """Let time pass before the next block."""
        self.now += seconds

    def transact(self, role: str, call: ContractFunction | ContractConstructor) -> TxReceipt:
        """Send a call in a block of its own, and give the receipt."""
        self.now += 1
        self.rpc("evm_setNextBlockTimestamp", self.now)
        terms: TxParams = {"from": self.people[role].address, "gas": CALL_GAS, "gasPrice": GAS_PRICE}
        sent = call.transact(terms)
        receipt = self.web3.eth.wait_for_transaction_receipt(sent, poll_latency=0.005)
        if receipt["status"] != 1:
            raise RuntimeError(f"a call of {role} reverted in transaction {sent.hex()}")
        return receipt

    def size(self, contract: str) -> int:
        """How many bytes of code a contract has on the chain."""
        return len(self.web3.eth.get_code(self.contracts[contract].address))

    def trace(self, transaction: str) -> list[dict[str, Any]]:
        """The steps of a transaction."""
        options = {"disableStorage": True, "disableMemory": True, "disableStack": True}
        return list(self.rpc("debug_traceTransaction", transaction, options)["structLogs"])

    def call(self, contract: str, function: str, *arguments: object) -> ContractFunction:
        """Form a call of a deployed contract."""
        formed: ContractFunction = getattr(self.contracts[contract].functions, function)(*arguments)
        return formed

    def sign(self, role: str, contract: str, types: dict[str, Any], message: dict[str, Any]) -> bytes:
        """Sign a message of Counterfoil's domain, or the token's."""
        fields = ("Test dollar", "2") if contract == "TestToken" else ("Counterfoil", "1")
        domain = {"name": fields[0], "version": fields[1], "chainId": self.web3.eth.chain_id}
        domain["verifyingContract"] = self.contracts[contract].address
        structs = {name: [{"name": n, "type": t} for n, t in members] for name, members in types.items()}
        return bytes(self.people[role].sign_message(encode_typed_data(domain, structs, message)).signature)

    def choice(self, role: str = "client") -> tuple[Any, ...]:
        """The first attempt of a lottery draw on the latest block."""
        head = self.web3.eth.get_block("latest")
        nonce = self.call("SessionManager", "draws", self.address(role)).call()
        return (1, nonce, 0, head["number"], bytes(head["hash"]), NO_CAP, keccak(text="receipt"))

    def terms_hash(self, role: str, terms: tuple[Any, ...]) -> bytes:
        """The nonce of an authorisation: the hash of all the terms of an open."""
        kinds = ["bytes32", "uint256", "address", "address", *["uint256"] * 4, "address"]
        kinds += ["(uint8,uint256,uint256,uint256,bytes32,uint256,bytes32)"]
        manager = self.contracts["SessionManager"].address
        type_hash = keccak(text="Counterfoil open_with_authorization v1")
        return keccak(encode(kinds, [type_hash, self.web3.eth.chain_id, manager, self.address(role), *terms]))

    def _deploy(self, label: str, *arguments: object, contract: str | None = None) -> str:
        made = self.source(contract or label)
        creation = self.web3.eth.contract(abi=made.abi, bytecode=made.bytecode).constructor(*arguments)
        address = self.transact("deployer", creation)["contractAddress"]
        self.contracts[label] = self.web3.eth.contract(address=address, abi=made.abi)
        return str(address)

    def _deploy_all(self) -> None:
        token = self._deploy("TestToken")
        stakes = (token, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD)
        registry = self._deploy("NodeRegistry", *stakes, self._address_after(4))
        manager = self._deploy("SessionManager", token, registry, CHALLENGE_PERIOD, MAX_DURATION, 128)
        self._deploy("ReputationLedger", manager)
        self._deploy("ExperienceLedger", manager)
        arbiter = self.address("arbiter")
        self._deploy("DisputeCourt", registry, manager, arbiter, BOND, DISPUTE_WINDOW, RESOLVE_WINDOW)
        self._deploy("RoutingLens", registry, manager, self.contracts["ReputationLedger"].address)
        # A second registry whose court is a person shows what the court's own calls of it cost.
        self._deploy("HeldRegistry", *stakes, self.address("bailiff"), contract="NodeRegistry")

    def _address_after(self, deployments: int) -> str:
        nonce = self.web3.eth.get_transaction_count(self.people["deployer"].address) + deployments
        raw = keccak(rlp_encode([bytes.fromhex(self.address("deployer")[2:]), nonce]))[12:]
        return Web3.to_checksum_address(raw)

    def _fund_all(self) -> None:
        spenders = ("NodeRegistry", "SessionManager", "DisputeCourt", "HeldRegistry")
        for role in ROLES:
            self.transact(role, self.call("TestToken", "mint", self.address(role), MINTED))
            for spender in spenders:
                self.transact(role, self.call("TestToken", "approve", self.contracts[spender].address, 2**256 - 1))
