"""The deployed system as the unit tests use it: roles, defaults, and the off-chain half of what is signed."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import ape
import rlp
from eth_abi import encode
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils import keccak, to_checksum_address

MIN_STAKE = 1_000
STAKE_PER_SLOT = 500
UNBONDING_PERIOD = 1_000_000
CHALLENGE_PERIOD = 3_600
MAX_DURATION = 86_400
MAX_SNAPSHOT_AGE = 20
BOND = 700
DISPUTE_WINDOW = 10_000
RESOLVE_WINDOW = 50_000
STAKE = 5_000
PRICE = 100
DEPOSIT = 1_000
DURATION = 7_200
NO_CAP = 2**256 - 1
LOTTERY = 1
CATEGORY = "data:crypto-price"
CATEGORY_ID = keccak(text=CATEGORY)
DECISION = keccak(text="receipt")
EMPTY = "0x" + "00" * 20
MINTED = 10**12
CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

VOUCHER = {"Voucher": [("sessionId", "bytes32"), ("amount", "uint256"), ("calls", "uint256")]}
RATING = {"Rating": [("sessionId", "bytes32"), ("score", "uint8")]}
EXPERIENCE = {
    "Experience": [
        ("sessionId", "bytes32"),
        ("tool", "string"),
        ("need", "string"),
        ("task", "string"),
        ("worked", "bool"),
        ("calls", "uint32"),
        ("failures", "uint32"),
        ("judgeScore", "uint8"),
        ("latencyMs", "uint32"),
        ("cost", "uint256"),
        ("message", "string"),
        ("note", "string"),
    ]
}

RECEIVE = {
    "ReceiveWithAuthorization": [
        ("from", "address"),
        ("to", "address"),
        ("value", "uint256"),
        ("validAfter", "uint256"),
        ("validBefore", "uint256"),
        ("nonce", "bytes32"),
    ]
}
TERMS_TYPE = keccak(text="Counterfoil open_with_authorization v1")


class Choice(NamedTuple):
    """The struct of `open`."""

    policy: int
    nonce: int
    attempt: int
    snapshot_block: int
    snapshot_hash: bytes
    price_cap: int
    decision: bytes


class Terms(NamedTuple):
    """What `open_with_authorization` takes before the authorisation: all that its client agrees to."""

    client: str
    service_id: int
    deposit: int
    max_price: int
    duration: int
    signer: str
    choice: Choice


class Authorization(NamedTuple):
    """The struct of `open_with_authorization`."""

    amount: int = DEPOSIT
    valid_after: int = 0
    valid_before: int = 2**48


class Record(NamedTuple):
    """The struct of `attest`."""

    session_id: bytes
    tool: str = "search"
    need: str = "find a paper"
    task: str = "task-7"
    worked: bool = True
    calls: int = 2
    failures: int = 1
    judge_score: int = 90
    latency_ms: int = 250
    cost: int = 100
    message: str = "second call succeeded"
    note: str = "slow at first"


def sign(account, contract, types, message, **domain):
    """An EIP-712 signature of 65 bytes; `domain` replaces fields of Counterfoil's."""
    fields = {
        "name": "Counterfoil",
        "version": "1",
        "chainId": ape.chain.chain_id,
        "verifyingContract": contract.address,
        **domain,
    }
    structs = {name: [{"name": n, "type": t} for n, t in members] for name, members in types.items()}
    signable = encode_typed_data(fields, structs, message)
    return bytes(Account.sign_message(signable, account.private_key).signature)


def high_s(signature):
    """The other signature of the same key over the same digest, which is refused."""
    s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])


def events(receipt, name):
    """The arguments of every event of that name, in order."""
    return [dict(log.event_arguments) for log in receipt.events if log.event_name == name]


def event(receipt, name):
    """The arguments of the only event of that name."""
    (found,) = events(receipt, name)
    return found


def refused_without_a_reason(send, *arguments, **options):
    """Send what the decoding of arguments refuses before the contract looks at it."""
    with ape.reverts() as refused:
        send(*arguments, **options)
    assert refused.value.revert_message == "Transaction failed."  # what Ape says where the chain says nothing


def entry(slot, key):
    """The storage slot of an entry of a Vyper mapping, as a hex quantity."""
    return "0x" + keccak(slot.to_bytes(32, "big") + key.rjust(32, b"\0")).hex()


def address_after(account, deployments):
    """Where the contract will be that an account deploys after so many others."""
    raw = rlp.encode([bytes.fromhex(str(account.address)[2:]), account.nonce + deployments])
    return to_checksum_address(keccak(raw)[12:])


@dataclass
class World:
    """The contracts, the accounts by role, and shorthands for what most tests do on the way."""

    chain: Any
    project: Any
    token: Any
    registry: Any
    manager: Any
    reputation: Any
    experience: Any
    lens: Any
    deployer: Any
    operator: Any
    rival: Any
    client: Any
    other: Any
    court: Any
    key: Any
    arbiter: Any = None

    @classmethod
    def deployed(cls, project, chain, *, dispute_court=False):
        """
        Deploy everything; node 1 of `operator` and node 2 of `rival` list service 1 and 2. The registry's court is an
        account that tests act as, or a DisputeCourt with an arbiter.
        """
        deployer, operator, rival, client, other, arbiter, key = list(ape.accounts.test_accounts)[:7]
        token = deployer.deploy(project.TestToken)
        # The registry is deployed next, and four contracts after it; then comes the court.
        court = address_after(deployer, 5) if dispute_court else arbiter
        registry = deployer.deploy(project.NodeRegistry, token, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD, court)
        manager = deployer.deploy(
            project.SessionManager, token, registry, CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE
        )
        reputation = deployer.deploy(project.ReputationLedger, manager)
        experience = deployer.deploy(project.ExperienceLedger, manager)
        lens = deployer.deploy(project.RoutingLens, registry, manager, reputation)
        world = cls(
            chain, project, token, registry, manager, reputation, experience, lens,
            deployer, operator, rival, client, other, court, key, arbiter,
        )  # fmt: skip
        if dispute_court:
            world.court = world.deploy_court()
        for account in (operator, rival, client, other):
            world.fund(account)
        for account in (operator, rival):
            world.node(account)
            world.service(world.registry.node_count(), account)
        return world

    def fund(self, account, amount=MINTED):
        """Mint to an account that lets registry, manager and court take it."""
        self.token.mint(account, amount, sender=self.deployer)
        if "approve" not in self.token.contract_type.mutable_methods:
            return  # the odd tokens let anybody take
        for spender in (self.registry, self.manager, self.court):
            self.token.approve(spender, 2**256 - 1, sender=account)

    def in_token(self, token, bond=BOND, unbonding_period=UNBONDING_PERIOD):
        """Registry, manager and court that stake and pay in another token, with the same two nodes and services."""
        court = address_after(self.deployer, 2)
        parameters = (MIN_STAKE, STAKE_PER_SLOT, unbonding_period)
        registry = self.deployer.deploy(self.project.NodeRegistry, token, *parameters, court)
        windows = (CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE)
        manager = self.deployer.deploy(self.project.SessionManager, token, registry, *windows)
        world = replace(self, token=token, registry=registry, manager=manager)
        world.court = world.deploy_court(bond=bond)
        for account in (self.operator, self.rival, self.client, self.other):
            world.fund(account)
        for account in (self.operator, self.rival):
            world.service(world.node(account), account)
        return world

    def court_arguments(self, **changes):
        """The arguments of a DisputeCourt, every one at its default unless named."""
        arguments = {
            "registry": self.registry,
            "session_manager": self.manager,
            "arbiter": self.arbiter,
            "bond": BOND,
            "dispute_window": DISPUTE_WINDOW,
            "resolve_window": RESOLVE_WINDOW,
            **changes,
        }
        return list(arguments.values())

    def deploy_court(self, **changes):
        """Deploy a DisputeCourt."""
        return self.deployer.deploy(self.project.DisputeCourt, *self.court_arguments(**changes))

    def node(self, operator=None, stake=STAKE, endpoint="http://node"):
        """Register a node and give its id."""
        receipt = self.registry.register_node(endpoint, stake, sender=operator or self.operator)
        return event(receipt, "NodeRegistered")["node_id"]

    def service(self, node_id, operator=None, category=CATEGORY, price=PRICE):
        """List a service and give its id."""
        receipt = self.registry.list_service(node_id, category, price, "", sender=operator or self.operator)
        return event(receipt, "ServiceListed")["service_id"]

    def choice(self, **changes):
        """A lottery choice on the latest block, the first attempt of the client's next draw."""
        head = self.chain.blocks.head
        defaults = Choice(
            policy=LOTTERY,
            nonce=self.manager.draws(self.client),
            attempt=0,
            snapshot_block=head.number,
            snapshot_hash=bytes(head.hash),
            price_cap=NO_CAP,
            decision=DECISION,
        )
        return defaults._replace(**changes)

    def open_receipt(
        self, service_id=1, *, choice=None, deposit=DEPOSIT, max_price=PRICE, duration=DURATION, signer=EMPTY,
        client=None,
    ):  # fmt: skip
        """Open a session with every argument at its default unless named."""
        client = client or self.client
        choice = choice or self.choice(nonce=self.manager.draws(client))
        return self.manager.open(service_id, deposit, max_price, duration, signer, choice, sender=client)

    def open(self, service_id=1, **arguments):
        """Open a session and give its id."""
        return bytes(event(self.open_receipt(service_id, **arguments), "SessionOpened")["session_id"])

    def voucher(self, session_id, amount, calls, signer=None, **domain):
        """A voucher signed by the client, or by `signer`."""
        message = {"sessionId": session_id, "amount": amount, "calls": calls}
        return sign(signer or self.client, self.manager, VOUCHER, message, **domain)

    def settle(self, session_id, amount=300, calls=3, signer=None, operator=None):
        """Settle a session by a voucher; at zero without one."""
        signature = self.voucher(session_id, amount, calls, signer) if amount or calls else b""
        return self.manager.settle(session_id, amount, calls, signature, sender=operator or self.operator)

    def settled(self, amount=300, calls=3, service_id=1, client=None):
        """Open a session, settle it, and give its id."""
        session_id = self.open(service_id, client=client)
        node_id = self.registry.services(service_id).node_id
        operator = self.rival if self.registry.nodes(node_id).operator == self.rival else self.operator
        self.settle(session_id, amount, calls, signer=client, operator=operator)
        return session_id

    def terms(self, client=None, **changes):
        """The terms of a relayed open, every one at its default unless named."""
        client = client or self.client
        choice = self.choice(nonce=self.manager.draws(client))
        defaults = Terms(str(client.address), 1, DEPOSIT, PRICE, DURATION, EMPTY, choice)
        return defaults._replace(**changes)

    def authorization(self, terms, authorization=None, signer=None, **changes):
        """The EIP-3009 signature over terms; `changes` replace fields of the message or of the token's domain."""
        amount, valid_after, valid_before = authorization or Authorization()
        domain = {name: changes.pop(name) for name in ("chainId", "verifyingContract") if name in changes}
        message = {
            "from": terms.client,
            "to": str(self.manager.address),
            "value": amount,
            "validAfter": valid_after,
            "validBefore": valid_before,
            "nonce": self.terms_hash(terms),
            **changes,
        }
        fields = {"name": "Test dollar", "version": "2", **domain}
        return sign(signer or self.client, self.token, RECEIVE, message, **fields)

    def open_for(self, terms, authorization=None, signature=None, sender=None):
        """Open a session by a relayer."""
        authorization = authorization or Authorization()
        if signature is None:
            signature = self.authorization(terms, authorization)
        sender = sender or self.other
        return self.manager.open_with_authorization(*terms, authorization, signature, sender=sender)

    def wallet(self, signer=None):
        """A wallet contract with an open session, which its owner's `signer` signs vouchers for: wallet and id."""
        wallet = self.deployer.deploy(self.project.Wallet1271)
        self.token.mint(wallet, DEPOSIT, sender=self.deployer)
        if "approve" in self.token.contract_type.mutable_methods:  # the odd tokens let anybody take
            wallet.execute(self.token, self.token.approve.encode_input(self.manager, DEPOSIT), sender=self.other)
        data = self.manager.open.encode_input(1, DEPOSIT, PRICE, DURATION, signer or self.key, self.choice(nonce=0))
        receipt = wallet.execute(self.manager, data, sender=self.other)
        return wallet, bytes(event(receipt, "SessionOpened")["session_id"])

    def creditor(self, *, award=0):
        """A wallet contract that is owed its deposit by the manager; and by the court bond and award, if it has one."""
        wallet, session_id = self.wallet()
        self.settle(session_id, 0, 0)
        if award:
            self.token.mint(wallet, BOND, sender=self.deployer)
            data = self.court.open_dispute.encode_input(session_id, award, "")
            wallet.execute(self.court, data, sender=self.other)
            self.court.resolve(session_id, award, sender=self.arbiter)
        return wallet

    def call_back(self, wallet, contract, data):
        """Have the odd token call a contract during every transfer from now on, as a wallet contract."""
        self.token.call_back(wallet, wallet.execute.encode_input(contract, data), sender=self.deployer)
        self.token.set_mode(4, sender=self.deployer)

    def delegate(self, account, contract):
        """Give an account the code of EIP-7702 that delegates to a contract; it keeps its key."""
        code = "0xef0100" + str(contract.address)[2:].lower()
        self.chain.provider.make_request("anvil_setCode", [str(account.address), code])

    def reach(self, address, data, sender=None):
        """Send data to any address, as `sender`."""
        sender = sender or self.other
        ecosystem = self.chain.provider.network.ecosystem
        return sender.call(
            ecosystem.create_transaction(sender=sender, receiver=str(address), data=data, gas_limit=5_000_000)
        )

    def dispute(self, session_id, claim=400, client=None, evidence="ipfs://evidence"):
        """Open a dispute and give its id."""
        receipt = self.court.open_dispute(session_id, claim, evidence, sender=client or self.client)
        return event(receipt, "DisputeOpened")["dispute_id"]

    def disputed(self, dispute_id):
        """The session of a dispute, by which the arbiter decides it."""
        return bytes(self.court.disputes(dispute_id).session_id)

    def rating(self, session_id, score, signer=None, **domain):
        """A rating signed by the client, or by `signer`."""
        message = {"sessionId": session_id, "score": score}
        return sign(signer or self.client, self.reputation, RATING, message, **domain)

    def signed_record(self, record, signer=None, **domain):
        """A record signed by the client, or by `signer`."""
        names = [name for name, _ in EXPERIENCE["Experience"]]
        message = dict(zip(names, record, strict=True))
        return sign(signer or self.client, self.experience, EXPERIENCE, message, **domain)

    def draw_seed(self, choice, client=None, category_id=CATEGORY_ID):
        """The seed of a draw, formed off chain."""
        account = str((client or self.client).address)
        words = [choice.snapshot_hash, account, choice.nonce, category_id]
        return keccak(encode(["bytes32", "address", "uint256", "bytes32"], words))

    def session_id(
        self, choice, service_id=1, node_id=1, price=PRICE, signer=None, client=None, category_id=CATEGORY_ID
    ):
        """A session's id, formed off chain."""
        client = client or self.client
        account = str(client.address)
        types = ["uint256", "address", "address", "uint256", "uint256", "uint256", "address", "bytes32"]
        types += ["uint8", "uint256", "uint256", "uint256", "uint256", "bytes32"]
        words = [self.chain.chain_id, str(self.manager.address), account, service_id, node_id, price]
        words += [signer or account, self.draw_seed(choice, client, category_id), choice.policy, choice.nonce]
        words += [choice.attempt, choice.snapshot_block, choice.price_cap, choice.decision]
        return keccak(encode(types, words))

    def terms_hash(self, terms):
        """The nonce of an authorisation, formed off chain."""
        choice = "(uint8,uint256,uint256,uint256,bytes32,uint256,bytes32)"
        types = ["bytes32", "uint256", "address", "address", "uint256", "uint256", "uint256", "uint256", "address"]
        words = [TERMS_TYPE, self.chain.chain_id, str(self.manager.address), *terms]
        return keccak(encode([*types, choice], words))

    def now(self):
        """The timestamp of the latest block."""
        return self.chain.blocks.head.timestamp

    def at(self, timestamp):
        """Give the next block this timestamp."""
        self.chain.pending_timestamp = timestamp

    def held(self):
        """What the session manager's token balance is."""
        return self.token.balanceOf(self.manager)

    def store(self, contract, slot, word):
        """Overwrite a storage word, for states that no sequence of calls reaches cheaply."""
        self.chain.provider.make_request("anvil_setStorageAt", [contract.address, slot, f"0x{word:064x}"])

    def slot_of(self, contract_name, variable):
        """The storage slot of a state variable."""
        from scripts.export_abi import CONTRACTS, compiled

        layout = compiled(CONTRACTS / f"{contract_name}.vy", ["layout"])["layout"]
        return layout["storage_layout"][variable]["slot"]
