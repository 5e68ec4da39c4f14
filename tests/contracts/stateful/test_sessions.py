"""SessionManager beside a plain model of its books, under random calls in random order (boa).

Whatever happens: the balance is the deposits held plus the credits owed plus what was sent by mistake, a node's active
sessions are those that nobody has ended, and every account is owed what the model says.
"""

from dataclasses import dataclass
from functools import cache

import boa
from eth_abi import encode
from eth_account import Account
from eth_utils import keccak
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.contracts.conftest import ROOT
from tests.contracts.world import EMPTY, NO_CAP

CHALLENGE, MOST, PRICE, STAKE = 100, 1_000, 10, 1_000
OPEN, CLOSING, SETTLED = 1, 2, 3
CLIENTS = [Account.from_key(keccak(text=f"client {i}")) for i in range(3)]
OPERATORS = [Account.from_key(keccak(text=f"operator {i}")) for i in range(2)]
DEPOSITS, DURATIONS = st.integers(PRICE, 500), st.integers(1, MOST)
ACCOUNTS = [account.address for account in (*CLIENTS, *OPERATORS)]
VOUCHER_TYPE = keccak(text="Voucher(bytes32 sessionId,uint256 amount,uint256 calls)")
PREVIOUS = """
@external
@view
def previous() -> bytes32:
    return blockhash(block.number - 1)
"""


@dataclass
class Session:
    """What the model knows of a session."""

    session_id: bytes
    client: int
    node: int
    deposit: int
    expires_at: int
    status: int = OPEN
    closes_at: int = 0
    paid: int = 0


def source(name):
    """The path of a contract."""
    return str(ROOT / "contracts" / f"{name}.vy")


def voucher(manager, session_id, amount, calls, account):
    """A signature over a voucher."""
    struct = keccak(encode(["bytes32", "bytes32", "uint256", "uint256"], [VOUCHER_TYPE, session_id, amount, calls]))
    digest = keccak(b"\x19\x01" + manager.domain_separator() + struct)
    return bytes(Account.unsafe_sign_hash(digest, account.key).signature)


@cache
def deployed():
    """Two nodes with one service each, and accounts with tokens: every run starts from here."""
    token = boa.load(source("testing/TestToken"))
    registry = boa.load(source("NodeRegistry"), token, 1, 1, 1, EMPTY)
    manager = boa.load(source("SessionManager"), token, registry, CHALLENGE, MOST, 10)
    for account in ACCOUNTS:
        token.mint(account, 10**9)
        for spender in (registry, manager):
            token.approve(spender, 2**256 - 1, sender=account)
    for node, operator in enumerate(OPERATORS, 1):
        registry.register_node("http://node", STAKE, sender=operator.address)
        registry.list_service(node, "data:x", PRICE, "", sender=operator.address)
    return token, manager, boa.loads(PREVIOUS)


class Books(RuleBasedStateMachine):
    """Three clients, two nodes, and any number of sessions."""

    def __init__(self):
        super().__init__()
        self.token, self.manager, self.blocks = deployed()
        self.undo = boa.env.anchor()
        self.undo.__enter__()
        self.sessions, self.donated = [], 0
        self.credits = dict.fromkeys(ACCOUNTS, 0)
        self.wallets = dict.fromkeys(ACCOUNTS, 10**9)
        for operator in OPERATORS:
            self.wallets[operator.address] -= STAKE

    def teardown(self):
        try:
            self.check_everything()
        finally:
            self.undo.__exit__(None, None, None)

    def now(self):
        return boa.env.evm.patch.timestamp

    def living(self, *statuses):
        return [session for session in self.sessions if session.status in statuses]

    def pay(self, address, amount):
        spent = min(amount, self.credits[address])
        self.credits[address] -= spent
        self.wallets[address] -= amount - spent

    def end(self, session, paid):
        self.credits[OPERATORS[session.node - 1].address] += paid
        self.credits[CLIENTS[session.client].address] += session.deposit - paid
        session.status, session.paid, session.deposit = SETTLED, paid, 0

    @rule(
        client=st.integers(0, 2), node=st.integers(1, 2), deposit=st.integers(PRICE, 500), duration=st.integers(1, MOST)
    )
    def open(self, client, node, deposit, duration):
        address = CLIENTS[client].address
        number = boa.env.evm.patch.block_number - 1
        choice = (1, self.manager.draws(address), 0, number, self.blocks.previous(), NO_CAP, b"\1" * 32)
        session_id = self.manager.open(node, deposit, PRICE, duration, EMPTY, choice, sender=address)
        self.pay(address, deposit)
        self.sessions.append(Session(session_id, client, node, deposit, self.now() + duration))

    @precondition(lambda self: self.living(OPEN))
    @rule(data=st.data(), payer=st.sampled_from(ACCOUNTS), amount=st.integers(1, 300))
    def top_up(self, data, payer, amount):
        session = data.draw(st.sampled_from(self.living(OPEN)))
        self.manager.top_up(session.session_id, amount, sender=payer)
        session.deposit += amount
        self.pay(payer, amount)

    @precondition(lambda self: self.living(OPEN, CLOSING))
    @rule(data=st.data(), calls=st.integers(0, 9))
    def settle(self, data, calls):
        session = data.draw(st.sampled_from(self.living(OPEN, CLOSING)))
        amount = data.draw(st.integers(0, session.deposit))
        signature = voucher(self.manager, session.session_id, amount, calls, CLIENTS[session.client])
        self.manager.settle(session.session_id, amount, calls, signature, sender=OPERATORS[session.node - 1].address)
        self.end(session, amount)

    @precondition(lambda self: self.living(OPEN))
    @rule(data=st.data())
    def request_close(self, data):
        session = data.draw(st.sampled_from(self.living(OPEN)))
        self.manager.request_close(session.session_id, sender=CLIENTS[session.client].address)
        session.status, session.closes_at = CLOSING, self.now() + CHALLENGE

    @precondition(lambda self: self.living(CLOSING))
    @rule(data=st.data(), sender=st.sampled_from(ACCOUNTS))
    def finish_close(self, data, sender):
        session = data.draw(st.sampled_from(self.living(CLOSING)))
        if self.now() < session.closes_at:
            with boa.reverts("sessions: challenge period runs"):
                self.manager.finish_close(session.session_id, sender=sender)
            return
        self.manager.finish_close(session.session_id, sender=sender)
        self.end(session, 0)

    @precondition(lambda self: self.living(OPEN, CLOSING))
    @rule(data=st.data(), sender=st.sampled_from(ACCOUNTS))
    def expire(self, data, sender):
        session = data.draw(st.sampled_from(self.living(OPEN, CLOSING)))
        if self.now() < session.expires_at + CHALLENGE:
            with boa.reverts("sessions: not expired"):
                self.manager.expire(session.session_id, sender=sender)
            return
        self.manager.expire(session.session_id, sender=sender)
        self.end(session, 0)

    @precondition(lambda self: self.living(SETTLED))
    @rule(data=st.data())
    def end_again(self, data):
        session = data.draw(st.sampled_from(self.living(SETTLED)))
        with boa.reverts("sessions: already settled"):
            self.manager.settle(session.session_id, 0, 0, b"", sender=OPERATORS[session.node - 1].address)
        with boa.reverts("sessions: not open"):
            self.manager.expire(session.session_id)

    @rule(account=st.sampled_from(ACCOUNTS), to=st.sampled_from(ACCOUNTS))
    def withdraw(self, account, to):
        if self.credits[account] == 0:
            with boa.reverts("sessions: no credit"):
                self.manager.withdraw(to, sender=account)
            return
        self.manager.withdraw(to, sender=account)
        self.wallets[to] += self.credits[account]
        self.credits[account] = 0

    @rule(amount=st.integers(1, 100))
    def donate(self, amount):
        self.token.mint(self.manager, amount)
        self.donated += amount

    @rule(seconds=st.integers(1, MOST))
    def wait(self, seconds):
        boa.env.evm.patch.timestamp += seconds

    @invariant()
    def balance_is_deposits_credits_and_gifts(self):
        held = sum(session.deposit for session in self.sessions)
        assert self.token.balanceOf(self.manager) == held + sum(self.credits.values()) + self.donated

    @invariant()
    def active_sessions_are_those_nobody_ended(self):
        for node in (1, 2):
            living = [session for session in self.living(OPEN, CLOSING) if session.node == node]
            assert self.manager.active_sessions(node) == len(living)

    def check_everything(self):
        """Every account and session: at the end of a run, since it is slow."""
        for account in ACCOUNTS:
            assert self.manager.credit_of(account) == self.credits[account]
            assert self.token.balanceOf(account) == self.wallets[account]
        for session in self.sessions:
            stored = self.manager.sessions(session.session_id)
            assert (stored.status, stored.deposit, stored.paid) == (session.status, session.deposit, session.paid)
            assert (stored.client, stored.node_id) == (CLIENTS[session.client].address, session.node)


Books.TestCase.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
TestBooks = Books.TestCase
