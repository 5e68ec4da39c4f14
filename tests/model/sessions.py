"""The model of SessionManager."""

from dataclasses import dataclass, field
from typing import NamedTuple

from eth_abi import encode
from eth_utils import keccak

from counterfoil.routing.lottery import draw_seed
from tests.model.core import EMPTY, MAX_AMOUNT, MAX_COUNT, Contract, Message, external, require
from tests.model.registry import Registry
from tests.model.token import Token

UNKNOWN, OPEN, CLOSING, SETTLED = range(4)
CHOICE = "(uint8,uint256,uint256,uint256,bytes32,uint256,bytes32)"
TERMS_TYPE = keccak(text="Counterfoil open_with_authorization v1")


class Choice(NamedTuple):
    """How a service was chosen."""

    policy: int
    nonce: int
    attempt: int
    snapshot_block: int
    snapshot_hash: bytes
    price_cap: int
    decision: bytes


class Draw(NamedTuple):
    """A client's latest draw: what every attempt of it must keep, the last attempt, and how many draws there were."""

    terms: tuple = ()
    attempt: int = 0
    draws: int = 0


@dataclass
class Session:
    """One session; `deposit` is what is held, `paid` what the operator got."""

    client: str
    operator: str
    signer: str
    service_id: int
    node_id: int
    price: int
    deposit: int
    expires_at: int
    closes_at: int = 0
    status: int = OPEN
    paid: int = 0
    calls: int = 0
    settled_at: int = 0


@dataclass
class Manager(Contract):
    """Sessions, the credits that they end in, and the draws of each client."""

    token: Token
    registry: Registry
    challenge_period: int
    max_duration: int
    max_snapshot_age: int
    sessions: dict = field(default_factory=dict)
    credits: dict = field(default_factory=dict)
    latest: dict = field(default_factory=dict)

    @external
    def open(self, sender, service_id, deposit, max_price, duration, signer, choice):
        session_id = self._open(sender, service_id, deposit, max_price, duration, signer, choice)
        self._take(sender, session_id, deposit)
        return session_id

    @external
    def open_with_authorization(
        self, _sender, client, service_id, deposit, max_price, duration, signer, choice, authorization, signature
    ):
        terms = (service_id, deposit, max_price, duration, signer, choice)
        nonce = self.terms_hash(client, *terms)
        require((client, nonce) not in self.token.used, "token: authorisation already used")
        held = self.token.balance(self.address)
        self.token.receive_with_authorization(client, self.address, authorization, nonce, signature)
        require((client, nonce) in self.token.used, "token: authorisation not used")
        require(self.token.balance(self.address) == held + authorization[0], "token: wrong amount")
        self._credit(client, authorization[0])
        session_id = self._open(client, *terms)
        require(self.credits.get(client, 0) >= deposit, "sessions: authorised less than the deposit")
        self._take(client, session_id, deposit)
        return session_id

    @external
    def top_up(self, sender, session_id, amount):
        session = self._known(session_id)
        require(session.status == OPEN, "sessions: not open")
        require(amount > 0, "sessions: nothing to add")
        require(session.deposit + amount < MAX_AMOUNT, "sessions: deposit too large")
        session.deposit += amount
        self.log("SessionToppedUp", session_id, session.deposit)
        self._take(sender, session_id, amount)

    @external
    def settle(self, sender, session_id, amount, calls, signature):
        session = self.sessions.get(session_id)
        require(session and session.operator == sender, "sessions: not the operator")
        require(session.status != SETTLED, "sessions: already settled")
        require(amount <= session.deposit, "sessions: voucher above deposit")
        require(calls < MAX_COUNT, "sessions: too many calls")
        if signature is not None or amount > 0 or calls > 0:
            message = Message("Voucher", self.address, (session_id, amount, calls))
            by_key = signature and session.signer in self.world.keys and signature.approves(session.signer, message)
            require(by_key, "sessions: bad voucher")
        self._end(session_id, amount, calls)

    @external
    def request_close(self, sender, session_id):
        session = self._known(session_id)
        require(session.status == OPEN, "sessions: not open")
        require(session.client == sender, "sessions: not the client")
        session.status, session.closes_at = CLOSING, self.world.now + self.challenge_period
        self.log("CloseRequested", session_id, session.closes_at)

    @external
    def finish_close(self, _sender, session_id):
        session = self._known(session_id)
        require(session.status == CLOSING, "sessions: close not requested")
        require(self.world.now >= session.closes_at, "sessions: challenge period runs")
        self._end(session_id, 0, 0)

    @external
    def expire(self, _sender, session_id):
        session = self.sessions.get(session_id)
        require(session and session.status != SETTLED, "sessions: not open")
        require(self.world.now >= session.expires_at + self.challenge_period, "sessions: not expired")
        self._end(session_id, 0, 0)

    @external
    def withdraw(self, sender, to):
        amount = self.credits.get(sender, 0)
        require(amount > 0, "sessions: no credit")
        require(to not in (EMPTY, self.address), "sessions: bad receiver")
        self.credits[sender] = 0
        self.log("CreditWithdrawn", sender, to, amount)
        self.token.push(self.address, to, amount)
        return amount

    def living(self):
        """The sessions that nobody has ended."""
        return {i: session for i, session in self.sessions.items() if session.status != SETTLED}

    def active(self, node_id):
        """How many sessions of a node nobody has ended."""
        return sum(session.node_id == node_id for session in self.living().values())

    def draws(self, client):
        """How many draws a client has started."""
        return self.latest.get(client, Draw()).draws

    def owed(self):
        """What the manager must hold: deposits and credits."""
        return sum(session.deposit for session in self.sessions.values()) + sum(self.credits.values())

    def settlement(self, session_id):
        """What a ledger may know of a session; None unless it is settled."""
        require(not self.locked, "")
        session = self.sessions.get(session_id)
        return session if session and session.status == SETTLED else None

    def terms_hash(self, client, service_id, deposit, max_price, duration, signer, choice):
        """The nonce of the authorisation that carries these terms."""
        types = ["bytes32", "uint256", "address", "address", *["uint256"] * 4, "address", CHOICE]
        words = [TERMS_TYPE, self.world.chain_id, self.address, client, service_id, deposit, max_price, duration]
        return keccak(encode(types, [*words, signer, tuple(choice)]))

    def _open(self, client, service_id, deposit, max_price, duration, signer, choice):
        require(self.registry.routable(service_id), "sessions: service not routable")
        service = self.registry.services[service_id]
        require(service.price <= max_price, "sessions: price above max_price")
        require(deposit >= service.price, "sessions: deposit below price")
        require(deposit < MAX_AMOUNT, "sessions: deposit too large")
        require(0 < duration <= self.max_duration, "sessions: duration out of range")
        self._check_snapshot(choice)
        seed = draw_seed(choice.snapshot_hash, client, choice.nonce, service.category_id)
        self._draw(client, seed, choice)
        operator = self.registry.nodes[service.node_id].operator
        signer = client if signer == EMPTY else signer
        session_id = self._session_id(client, service_id, service, signer, seed, choice)
        session = Session(client, operator, signer, service_id, service.node_id, service.price, deposit, 0)
        session.expires_at = self.world.now + duration
        self.sessions[session_id] = session
        terms = (session.price, max_price, deposit, session.expires_at, *choice[:5], seed, *choice[5:])
        self.log("SessionOpened", session_id, client, service_id, service.node_id, operator, signer, *terms)
        return session_id

    def _check_snapshot(self, choice):
        age = self.world.block - choice.snapshot_block
        require(age > 0, "sessions: snapshot not in the past")
        require(age <= self.max_snapshot_age, "sessions: snapshot too old")
        require(choice.snapshot_hash != bytes(32), "sessions: empty snapshot hash")
        ours = self.world.block_hash(choice.snapshot_block) == choice.snapshot_hash
        require(ours, "sessions: snapshot not on this chain")

    def _draw(self, client, seed, choice):
        require(choice.attempt < MAX_COUNT, "sessions: attempt too large")
        latest = self.latest.get(client, Draw())
        terms = (seed, choice.policy, choice.snapshot_block, choice.price_cap)
        draws = latest.draws
        if choice.nonce == draws:
            draws += 1
        else:
            require(choice.nonce == draws - 1, "sessions: wrong nonce")
            require(terms == latest.terms, "sessions: not the latest draw")
            require(choice.attempt > latest.attempt, "sessions: attempt not later")
        self.latest[client] = Draw(terms, choice.attempt, draws)

    def _session_id(self, client, service_id, service, signer, seed, choice):
        types = ["uint256", "address", "address", "uint256", "uint256", "uint256", "address", "bytes32"]
        types += ["uint8", "uint256", "uint256", "uint256", "uint256", "bytes32"]
        words = [self.world.chain_id, self.address, client, service_id, service.node_id, service.price, signer, seed]
        words += [choice.policy, choice.nonce, choice.attempt, choice.snapshot_block, choice.price_cap]
        return keccak(encode(types, [*words, choice.decision]))

    def _known(self, session_id):
        require(session_id in self.sessions, "sessions: unknown session")
        return self.sessions[session_id]

    def _take(self, payer, session_id, amount):
        credit = self.credits.get(payer, 0)
        spent = min(credit, amount)
        if spent > 0:
            self.credits[payer] = credit - spent
            self.log("CreditSpent", payer, session_id, spent)
        self.token.pull(payer, self.address, amount - spent)

    def _credit(self, account, amount):
        if amount > 0:
            self.credits[account] = self.credits.get(account, 0) + amount
            self.log("Credited", account, amount)

    def _end(self, session_id, paid, calls):
        session = self.sessions[session_id]
        refunded = session.deposit - paid
        session.status, session.settled_at = SETTLED, self.world.now
        session.paid, session.calls, session.deposit, session.closes_at = paid, calls, 0, 0
        self.log("SessionSettled", session_id, session.node_id, session.client, paid, refunded, calls)
        self._credit(session.operator, paid)
        self._credit(session.client, refunded)
