"""The model of DisputeCourt."""

from dataclasses import dataclass, field

from tests.model.core import EMPTY, MAX_AMOUNT, Contract, external, require
from tests.model.registry import Registry
from tests.model.sessions import Manager
from tests.model.token import Token

OPEN, UPHELD, REFUSED, DROPPED = range(1, 5)


@dataclass
class Dispute:
    """One dispute."""

    session_id: bytes
    node_id: int
    client: str
    operator: str
    claim: int
    opened_at: int
    status: int = OPEN


@dataclass
class Court(Contract):
    """Disputes, which count from 1, and the credits that they end in."""

    token: Token
    registry: Registry
    manager: Manager
    bond: int
    dispute_window: int
    resolve_window: int
    arbiter: str
    pending: str = EMPTY
    disputes: dict = field(default_factory=dict)
    credits: dict = field(default_factory=dict)

    @external
    def open_dispute(self, sender, session_id, claim, evidence):
        session = self.manager.settlement(session_id)
        require(session, "court: session not settled")
        require(session.client == sender, "court: not the client")
        require(self.world.now < session.settled_at + self.dispute_window, "court: dispute window is over")
        require(self.dispute_of(session_id) == 0, "court: already disputed")
        require(0 < claim < MAX_AMOUNT, "court: claim out of range")
        dispute_id = len(self.disputes) + 1
        dispute = Dispute(session_id, session.node_id, sender, session.operator, claim, self.world.now)
        self.disputes[dispute_id] = dispute
        self.log("DisputeOpened", dispute_id, session_id, dispute.node_id, sender, claim, self.bond, evidence)
        self.registry.hold(self.address, dispute.node_id)
        self.token.pull(sender, self.address, self.bond)
        return dispute_id

    @external
    def resolve(self, sender, session_id, award):
        require(sender == self.arbiter, "court: not the arbiter")
        dispute_id = self.dispute_of(session_id)
        dispute = self._opened(dispute_id)
        require(self.world.now < dispute.opened_at + self.resolve_window, "court: resolve window is over")
        require(award <= dispute.claim, "court: award above the claim")
        if award == 0:
            self._close(dispute_id, REFUSED, 0)
            self._credit(dispute.operator, self.bond)
            return
        held = self.token.balance(self.address)
        taken = self.registry.slash(self.address, dispute.node_id, award)
        arrived = min(taken, self.token.balance(self.address) - held)
        self._close(dispute_id, UPHELD, arrived)
        self._credit(dispute.client, self.bond + arrived)

    @external
    def drop(self, _sender, dispute_id):
        dispute = self._opened(dispute_id)
        require(self.world.now >= dispute.opened_at + self.resolve_window, "court: resolve window runs")
        self._close(dispute_id, DROPPED, 0)
        self._credit(dispute.client, self.bond)

    @external
    def withdraw(self, sender, to):
        amount = self.credits.get(sender, 0)
        require(amount > 0, "court: no credit")
        require(to not in (EMPTY, self.address), "court: bad receiver")
        self.credits[sender] = 0
        self.log("CourtWithdrawn", sender, to, amount)
        self.token.push(self.address, to, amount)
        return amount

    @external
    def offer_arbiter(self, sender, arbiter):
        require(sender == self.arbiter, "court: not the arbiter")
        self.pending = arbiter

    @external
    def accept_arbiter(self, sender):
        require(sender == self.pending, "court: not offered to you")
        self.arbiter, self.pending = sender, EMPTY
        self.log("ArbiterChanged", sender)

    def dispute_of(self, session_id):
        """The dispute of a session; 0 for none."""
        return next((i for i, dispute in self.disputes.items() if dispute.session_id == session_id), 0)

    def opened(self):
        """The disputes that nobody has ended."""
        return {i: dispute for i, dispute in self.disputes.items() if dispute.status == OPEN}

    def owed(self):
        """What the court must hold: the bonds of open disputes and credits."""
        return self.bond * len(self.opened()) + sum(self.credits.values())

    def _opened(self, dispute_id):
        dispute = self.disputes.get(dispute_id)
        require(dispute and dispute.status == OPEN, "court: not open")
        return dispute

    def _close(self, dispute_id, status, award):
        dispute = self.disputes[dispute_id]
        self.registry.release(self.address, dispute.node_id)
        dispute.status = status
        self.log("DisputeResolved", dispute_id, dispute.session_id, dispute.node_id, status, award)

    def _credit(self, account, amount):
        if amount > 0:
            self.credits[account] = self.credits.get(account, 0) + amount
            self.log("CourtCredited", account, amount)
