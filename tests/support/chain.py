"""A real chain for tests: anvil on a free port, the real contracts, and people who use them."""

import json
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from eth_account import Account
from eth_hash.auto import keccak

from counterfoil.chain.artifacts import artifact
from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import (
    Choice,
    NodeRegistry,
    Opening,
    ReputationLedger,
    RoutingLens,
    SessionManager,
    Token,
    Write,
)
from counterfoil.chain.provider import BoundedProvider
from counterfoil.chain.sender import Sender, events
from counterfoil.chain.typed_data import voucher
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import Policy, Request, Skipped, build, digest
from counterfoil.routing.lottery import category_id
from indexer.deployment import DeployedContract, Deployment

ROOT = Path(__file__).parent.parent.parent
MIN_STAKE = 1_000_000
STAKE_PER_SLOT = 500_000
CATEGORY = "data:crypto-price"
_STARTED_SECONDS = 30


@cache
def anvil_binary():
    """The platform package's own binary, without the Node wrapper."""
    return next(ROOT.glob("node_modules/@foundry-rs/anvil-*/bin/anvil*"))


@contextmanager
def anvil(*arguments):
    """Run anvil until the block ends, and give its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [anvil_binary(), "--silent", "--port", str(port), "--accounts", "1", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=10)


def _wait_for(port, process):
    deadline = time.monotonic() + _STARTED_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.02)
    raise RuntimeError("anvil did not start")


def person(name):
    """A key that is the same in every run."""
    return Account.from_key(keccak(name.encode()))


def unused_url():
    """A URL where nothing answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@dataclass
class World:
    """The contracts on one chain, their deployment file in `home`, and what people did."""

    url: str
    home: Path
    chain: Chain
    senders: dict = field(default_factory=dict)
    opened: list = field(default_factory=list)

    def __post_init__(self):
        self.registry = NodeRegistry(self.chain)
        self.manager = SessionManager(self.chain)
        self.reputation = ReputationLedger(self.chain)
        self.lens = RoutingLens(self.chain)
        self.token = Token(self.chain, self.chain.deployment.contracts["TestToken"].address)
        self.receipts = ReceiptStore(self.home / "receipts")

    def rpc(self, method, *parameters):
        return self.chain.provider.make_request(method, list(parameters))["result"]

    def reorg(self, depth):
        """Replace the newest blocks: a transfer in the first of them gives all of them other hashes."""
        (rich,) = self.rpc("eth_accounts")
        self.rpc("anvil_reorg", depth, [[{"from": rich, "to": rich, "value": "0x1"}, 0]])

    def by(self, name):
        """Somebody with gas, test tokens, and approvals for both contracts."""
        if name not in self.senders:
            sender = Sender(self.chain, person(name))
            self.rpc("anvil_setBalance", sender.address, hex(10**21))
            self.senders[name] = sender
            sender.send(self.token.mint(sender.address, 10**15))
            sender.send(self.token.approve(self.registry.address, 10**15))
            sender.send(self.token.approve(self.manager.address, 10**15))
        return self.senders[name]

    def node(self, operator, stake, price, category=CATEGORY):
        """Register a node with one service, and give its service_id."""
        node = self.write(operator, self.registry.register_node(f"http://{operator}.test", stake), "NodeRegistered")
        return self.list(operator, node["node_id"], price, category)

    def list(self, operator, node_id, price, category=CATEGORY):
        listing = self.registry.list_service(node_id, category, price, f"ipfs://{operator}")
        return self.write(operator, listing, "ServiceListed")["service_id"]

    def write(self, name, write: Write, event):
        (found,) = events(write, self.by(name).send(write), event)
        return found

    def decide(
        self, client, category=CATEGORY, *, block=None, attempt=0, skipped=(), cap=None, pinned=None, nonce=None
    ):
        """A receipt over the candidates after a block, as an honest client makes it."""
        snapshot = self.chain.head() if block is None else self.chain.block(block)
        size = self.registry.category_size(category_id(category), snapshot.number)
        candidates = self.lens.candidates(category_id(category), size, snapshot.number)
        address = self.by(client).address
        return build(
            chain_id=self.chain.chain_id,
            contracts=self.chain.deployment.addresses(),
            snapshot_block=snapshot.number,
            snapshot_hash=snapshot.hash,
            request=Request(
                category=category,
                client=address,
                nonce=self.manager.draws(address) if nonce is None else nonce,
                price_cap=cap,
                policy=Policy.LOTTERY if pinned is None else Policy.PINNED,
                pinned=pinned,
            ),
            candidates=candidates,
            attempt=attempt,
            skipped=skipped,
        )

    def open(self, client, receipt, *, save=True, service_id=None, decision=None, max_price=None, policy=None):
        """Open a session as a receipt says, or not quite as it says."""
        if save:
            self.receipts.save(receipt)
        request = receipt.request
        choice = Choice(
            policy=int(request.policy) if policy is None else policy,
            nonce=request.nonce,
            attempt=receipt.attempt,
            snapshot_block=receipt.snapshot_block,
            snapshot_hash=receipt.snapshot_hash,
            price_cap=request.price_cap,
            decision=digest(receipt) if decision is None else decision,
        )
        chosen = receipt.choice if service_id is None else service_id
        price = self.registry.service(chosen).price
        limit = price if max_price is None else max_price
        opening = self.manager.open(Opening(chosen, price * 10, limit, 3600, choice))
        session = "0x" + self.write(client, opening, "SessionOpened")["session_id"].hex()
        self.opened.append(session)
        return session

    def route(self, client, **options):
        """Decide and open."""
        return self.open(client, self.decide(client, **options))

    def skip_first(self, client, why="no answer in 2 s", **options):
        """Decide, find the first of the order silent, and open with the second."""
        first = self.decide(client, **options)
        same = options | {"block": first.snapshot_block, "nonce": first.request.nonce}
        skipped = [Skipped(first.order[0], why)]
        return self.open(client, self.decide(client, attempt=1, skipped=skipped, **same))

    def settle(self, session_id, client, operator, calls=1):
        state = self.manager.session(session_id)
        paid = voucher(self.chain.chain_id, self.manager.address, session_id, state.price * calls, calls)
        signature = paid.sign(self.by(client).account)
        self.by(operator).send(self.manager.settle(session_id, state.price * calls, calls, signature))


def deploy(url, home, min_stake=MIN_STAKE, stake_per_slot=STAKE_PER_SLOT):
    """Deploy everything and write the deployment file."""
    deployer = _Deployer(url)
    token = deployer.deploy("TestToken", {})
    registry = deployer.deploy(
        "NodeRegistry",
        {
            "stake_token": token,
            "min_stake": min_stake,
            "stake_per_slot": stake_per_slot,
            "unbonding_period": 100,
            "court": "0x" + "0" * 40,
        },
    )
    manager = deployer.deploy(
        "SessionManager",
        {
            "payment_token": token,
            "registry": registry,
            "challenge_period": 60,
            "max_duration": 86400,
            "max_snapshot_age": 200,
        },
    )
    reputation = deployer.deploy("ReputationLedger", {"session_manager": manager})
    deployer.deploy("ExperienceLedger", {"session_manager": manager})
    lens = {"registry": registry, "session_manager": manager, "reputation": reputation}
    deployer.deploy("RoutingLens", lens)
    path = home / "deployments" / "31337.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(deployer.document()))
    return World(url, home, deployer.connect())


class _Deployer:
    def __init__(self, url):
        self.url = url
        self.chain = Chain(BoundedProvider(url), Deployment(31337, "0x" + "0" * 64, {}))
        self.sender = Sender(self.chain, person("deployer"))
        self.chain.provider.make_request("anvil_setBalance", [self.sender.address, hex(10**21)])
        self.contracts = {}

    def deploy(self, name, arguments):
        made = artifact(name)
        contract = self.chain.web3.eth.contract(abi=made.abi, bytecode=made.bytecode)
        creation = contract.constructor(*arguments.values())
        mined = self.sender.send(Write(f"{name}.deploy", creation))
        address = mined.receipt["contractAddress"]
        self.contracts[name] = DeployedContract(
            name=name,
            address=address,
            block=mined.block,
            block_hash=mined.block_hash,
            transaction=mined.transaction,
            arguments={key: str(argument) for key, argument in arguments.items()},
            code_hash="0x" + keccak(self.chain.code(address)).hex(),
        )
        return address

    def document(self):
        contracts = {
            name: {
                "address": one.address,
                "block": one.block,
                "block_hash": one.block_hash,
                "transaction": one.transaction,
                "arguments": dict(one.arguments),
                "code_hash": one.code_hash,
            }
            for name, one in self.contracts.items()
        }
        genesis = self.chain.block(0).hash
        return {"version": 1, "chain_id": 31337, "genesis_hash": genesis, "contracts": contracts}

    def connect(self):
        self.chain.deployment = Deployment(31337, self.chain.block(0).hash, self.contracts)
        return self.chain
