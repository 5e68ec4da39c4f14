"""Ratings, records and disputes."""

from hypothesis import strategies as st

from tests.contracts.stateful.choosing import changed, mostly, one_of
from tests.contracts.stateful.deployment import CATEGORY, CLIENTS, OTHER_CATEGORY
from tests.contracts.stateful.machine_base import MachineBase, action
from tests.model.core import EMPTY, MAX_AMOUNT, NO_CAP
from tests.model.ledgers import Record
from tests.model.sessions import SETTLED
from tests.model.token import FEE, SILENT

SCORES = st.one_of(st.integers(0, 100), st.integers(0, 100), st.sampled_from([100, 101, 255]))
TOOLS = st.sampled_from(["search", "fetch", "parse", "x" * 64])
RECORD_FIELDS = {
    "tool": st.just(""),
    "judge_score": st.sampled_from([0, 100, 101, 254, 255]),
    "cost": st.sampled_from([0, 1, 2**128, 2**255]),
    "calls": st.sampled_from([0, 1, 2**32 - 1]),
    "failures": st.sampled_from([0, 2, 3]),
    "need": st.just(""),
}
CLAIMS = st.one_of(st.integers(1, 3_000), st.integers(3_000, 9_000), st.just(MAX_AMOUNT - 1))


def settled(machine):
    """The sessions that somebody ended."""
    return machine.in_status(SETTLED)


class LedgerRules(MachineBase):
    """What clients say of a session when it is over."""

    def client_of(self, session_id):
        session = self.model.manager.sessions.get(session_id)
        return session.client if session else self.model.accounts[0]

    def signature(self, data, good, other):
        """A signature that fits, or seldom one that does not."""
        bad = [None, good._replace(sound=False), good._replace(signer=self.anyone(data)), other]
        return mostly(data, st.just(good), st.sampled_from(bad), "signature")

    @action(8, when=lambda self: self.model.manager.sessions)
    def rate(self, data):
        """By the client itself, or by its signature in another's hands."""
        unrated = [i for i in settled(self) if i not in self.model.reputation.scores]
        session_id, score = self.session(data, unrated), data.draw(SCORES, label="score")
        client = self.client_of(session_id)
        if data.draw(st.booleans(), label="directly"):
            self.driver.act("reputation", "rate", self.sender(data, client), session_id, score)
            return
        good = self.driver.rating(session_id, score, client)
        signature = self.signature(data, good, self.driver.rating(session_id, (score + 1) % 256, client))
        self.driver.act("reputation", "rate_by_signature", self.anyone(data), session_id, score, signature)

    def record(self, data):
        """A record of a settled session, and its signature."""
        session_id = self.session(data, settled(self)[-2:])
        session = self.model.manager.sessions.get(session_id)
        spent = sum(one.cost for one in self.model.experience.of(session_id).values())
        left = session.paid - spent if session else 0
        cost = mostly(data, st.sampled_from([0, left // 2, left]), st.just(left + 1), "cost")
        tool, worked = data.draw(TOOLS, label="tool"), data.draw(st.booleans(), label="worked")
        record = Record(session_id, tool, "find a paper", "task", worked, 2, 1, 90, 250, cost, "it went well", "slowly")
        record = changed(data, record, RECORD_FIELDS, "record")
        good = self.driver.signed_record(record, self.client_of(session_id))
        other = self.driver.signed_record(record._replace(worked=not worked), self.client_of(session_id))
        return record, self.signature(data, good, other)

    @action(8, when=settled)
    def attest(self, data):
        """One record, or several at once, all or none; seldom a signature too few."""
        count = data.draw(st.sampled_from([1, 1, 1, 0, 2, 3]), label="count")
        if count == 1:
            self.driver.act("experience", "attest", self.anyone(data), *self.record(data))
            return
        pairs = [self.record(data) for _ in range(count)]
        records, signatures = [record for record, _ in pairs], [signature for _, signature in pairs]
        missing = mostly(data, st.just(0), st.just(1), "signatures missing")
        signatures = signatures[: len(signatures) - missing] if missing else signatures
        self.driver.act("experience", "attest_many", self.anyone(data), records, signatures)

    @action(6, when=settled)
    def open_dispute(self, data):
        """Of a fresh settlement, seldom of another; seldom at the last second of the window or the one after it."""
        court, sessions = self.model.court, self.model.manager.sessions
        fresh = self.fresh()
        session_id = self.session(data, fresh)
        if session_id in fresh and data.draw(st.booleans(), label="waits"):
            end = sessions[session_id].settled_at + court.dispute_window
            self.driver.set_clock(now=end + data.draw(st.integers(-1, 0), label="offset"))
        claim = mostly(data, CLAIMS, st.sampled_from([0, MAX_AMOUNT]), "claim")
        sender = self.sender(data, self.client_of(session_id))
        self.driver.act("court", "open_dispute", sender, session_id, claim, "ipfs://evidence")

    @action(6, when=lambda self: self.model.court.disputes)
    def end_dispute(self, data):
        """The arbiter decides, or anyone drops what it left alone; at the deadline, before it or after it."""
        court = self.model.court
        dispute_id = one_of(data, court.opened(), range(len(court.disputes) + 2), "dispute")
        dispute = court.disputes.get(dispute_id)
        waits = bool(dispute) and data.draw(st.booleans(), label="waits")
        end = dispute.opened_at + court.resolve_window if dispute else 0
        if data.draw(st.integers(0, 2), label="2 drops") == 2:
            call = ("court", "drop", self.anyone(data), dispute_id)
            self.act_around(end, *call) if waits else self.driver.act(*call)
            return
        if waits:
            self.driver.set_clock(now=max(self.model.world.now, end + data.draw(st.integers(-1, 0), label="offset")))
        claim = dispute.claim if dispute else 0
        awards = st.one_of(st.integers(0, claim), st.just(0), st.just(claim))
        award = mostly(data, awards, st.just(claim + 1), "award")
        session_id = dispute.session_id if dispute else self.session(data, self.fresh())
        self.driver.act("court", "resolve", self.sender(data, court.arbiter), session_id, award)

    @action(7, when=lambda self: self.fresh())
    def judge(self, data):
        """A dispute from its opening to its end, mostly, with awards of nothing, some stake, all, and more.

        The operator may have taken stake out before, and the token may turn dishonest in between.
        """
        session_id = data.draw(st.sampled_from(self.fresh()), label="session")
        session = self.model.manager.sessions[session_id]
        node = self.model.registry.nodes[session.node_id]
        if node.stake > 1_500 and data.draw(st.booleans(), label="unstakes"):
            self.driver.act("registry", "request_unstake", node.operator, session.node_id, 500)
            node = self.model.registry.nodes[session.node_id]
        claim = node.stake + node.unbonding + 5
        opened = self.driver.act("court", "open_dispute", session.client, session_id, claim, "")
        kind = data.draw(st.integers(0, 5), label="4 is dishonest, 5 leaves it open")
        if opened.reason is None and kind < 5:
            if kind == 4:
                self.driver.set_mode("stake", data.draw(st.sampled_from([FEE, SILENT]), label="mode"), 0)
            edges = [0, 1, 9, node.stake, node.stake + 1, node.stake + node.unbonding, claim, claim + 1]
            award = data.draw(st.sampled_from(edges), label="award")
            self.driver.act("court", "resolve", self.model.court.arbiter, session_id, award)

    @action(1)
    def campaign(self, data):
        """Ratings of one node that cost nothing, one after the other: few of them count."""
        service_id = data.draw(st.integers(1, 3), label="service")
        operator = self.model.registry.nodes[self.model.registry.services[service_id].node_id].operator
        client = data.draw(st.sampled_from(CLIENTS), label="client")
        for _ in range(5):
            price = self.model.registry.services[service_id].price
            opened = self.driver.act(
                "manager", "open", client, service_id, price, price, 60, EMPTY, self.driver.choice(client)
            )
            if opened.reason is None:
                self.driver.act("manager", "settle", operator, opened.answer, 0, 0, None)
                self.driver.act("reputation", "rate", client, opened.answer, 100)

    def fresh(self):
        """The sessions that can be disputed."""
        court, sessions, now = self.model.court, self.model.manager.sessions, self.model.world.now
        undisputed = [i for i in settled(self) if not court.dispute_of(i)]
        return [i for i in undisputed if now < sessions[i].settled_at + court.dispute_window]

    @action(1)
    def hand_over_arbiter(self, data):
        """Offer the office and take it, or try to."""
        court = self.model.court
        offered = mostly(data, st.sampled_from(self.model.accounts), st.just(EMPTY), "offered")
        self.driver.act("court", "offer_arbiter", self.sender(data, court.arbiter), offered)
        receivers = [self.model.court.pending] if self.model.court.pending != EMPTY else []
        self.driver.act("court", "accept_arbiter", self.sender(data, *receivers))

    @action(2)
    def page_and_draw(self, data):
        """The lens pages candidates, and draws with any cap and seed, as the Python implementation does."""
        category = data.draw(st.sampled_from([CATEGORY, CATEGORY, OTHER_CATEGORY, "nobody"]), label="category")
        start, count = data.draw(st.integers(0, 5), label="start"), data.draw(st.integers(0, 5), label="count")
        self.driver.check_page(category, start, count)
        cap = data.draw(st.sampled_from([NO_CAP, 0, 10, 12, 20]), label="cap")
        seed = data.draw(st.integers(0, 2**32), label="seed").to_bytes(32, "big")
        self.driver.check_draw(category, cap, seed, data.draw(st.sampled_from([0, 1, 2, 16, 17]), label="length"))
