"""Sessions: opening, paying, ending, and what is owed afterwards."""

from hypothesis import strategies as st

from tests.contracts.stateful.choosing import AMOUNTS, BYTES, changed, mostly, one_of
from tests.contracts.stateful.deployment import CLIENTS, MAX_DURATION
from tests.contracts.stateful.machine_base import MachineBase, action
from tests.model.core import EMPTY, MAX_COUNT, NO_CAP
from tests.model.sessions import CLOSING, OPEN

DURATIONS = st.one_of(st.integers(1, 60), st.integers(1, MAX_DURATION))
BAD_DURATIONS = st.sampled_from([0, MAX_DURATION, MAX_DURATION + 1])
CALLS = st.one_of(st.integers(0, 3), st.integers(0, 3), st.sampled_from([MAX_COUNT - 1, MAX_COUNT]))
CAPS = st.sampled_from([NO_CAP, NO_CAP, 0, 11])


class SessionRules(MachineBase):
    """What clients and operators do with sessions."""

    def __init__(self):
        super().__init__()
        self.latest = {}

    def choice(self, data, client):
        """A new draw, or another attempt of the latest one; seldom with a field that does not fit."""
        if client in self.latest and data.draw(st.integers(0, 3), label="3 tries again") == 3:
            draw = self.latest[client]
            draw = draw._replace(attempt=draw.attempt + data.draw(st.integers(0, 2), label="attempts later"))
        else:
            draw = self.driver.choice(client, price_cap=data.draw(CAPS, label="price_cap"))
        number = self.model.world.block - data.draw(st.integers(-1, 7), label="age")
        fields = {
            "policy": st.integers(0, 3),
            "nonce": st.integers(0, self.model.manager.draws(client) + 1),
            "attempt": st.sampled_from([0, 1, 2, MAX_COUNT - 1, MAX_COUNT]),
            "snapshot_block": st.just(number),
            "snapshot_hash": BYTES,
            "price_cap": st.sampled_from([0, 11, NO_CAP]),
            "decision": BYTES,
        }
        draw = changed(data, draw, fields, "choice")
        if draw.snapshot_block == number and number < self.model.world.block:
            draw = draw._replace(snapshot_hash=self.model.world.block_hash(number))
        return draw

    def terms(self, data, client):
        """Everything that `open` takes."""
        services = self.model.registry.services
        routable = [i for i in services if self.model.registry.routable(i)]
        service_id = one_of(data, routable, range(len(services) + 2), "service")
        price = services[service_id].price if service_id in services else 10
        small = st.integers(price, price + 400)
        deposit = mostly(data, small, st.one_of(st.just(max(price - 1, 0)), AMOUNTS), "deposit")
        max_price = mostly(data, st.just(price), st.sampled_from([max(price - 1, 0), price + 1, NO_CAP]), "max_price")
        duration = mostly(data, DURATIONS, BAD_DURATIONS, "duration")
        signer = data.draw(st.sampled_from([EMPTY, EMPTY, EMPTY, client, *self.model.accounts]), label="signer")
        return service_id, deposit, max_price, duration, signer, self.choice(data, client)

    def client(self, data):
        return one_of(data, [*CLIENTS, self.driver.wallet], self.model.accounts, "client")

    @action(8)
    def open(self, data):
        client = self.client(data)
        terms = self.terms(data, client)
        if self.driver.act("manager", "open", client, *terms).reason is None:
            self.latest[client] = terms[-1]

    @action(5)
    def open_with_authorization(self, data):
        """A relayer carries a client's terms; seldom other terms than were signed, or the same ones twice."""
        client = self.client(data)
        terms = self.terms(data, client)
        authorization = self.authorization(data, client, terms[1])
        signature = self.driver.authorization(client, terms, authorization)
        signature = mostly(data, st.just(signature), st.just(signature._replace(signer=self.anyone(data))), "signature")
        if data.draw(st.integers(0, 9), label="9 changes the terms") == 9:
            terms = self.other_terms(data, terms)
        call = ("manager", "open_with_authorization", self.anyone(data), client, *terms, authorization, signature)
        if self.driver.act(*call).reason is None:
            self.latest[client] = terms[-1]
            if data.draw(st.integers(0, 3), label="3 is twice") == 3:
                self.driver.act(*call)

    def authorization(self, data, client, deposit):
        """An amount, mostly enough beside the client's credit, and times, mostly around now."""
        now, credit = self.model.world.now, self.model.manager.credits.get(client, 0)
        enough = max(deposit - credit, 0)
        likely = st.sampled_from([enough, deposit, deposit + 1])
        amount = mostly(data, likely, st.sampled_from([0, max(enough - 1, 0)]), "amount")
        after = mostly(data, st.just(now - 1), st.sampled_from([now, now + 1]), "valid_after")
        until = mostly(data, st.just(now + 1), st.sampled_from([now, now - 1]), "valid_before")
        return amount, after, until

    @staticmethod
    def other_terms(data, terms):
        """The same terms with one of the integers, or the receipt's digest, changed."""
        field = data.draw(st.integers(1, 5), label="field")
        if field > 3:
            return (*terms[:-1], terms[-1]._replace(decision=b"\3" * 32))
        return tuple(entry + (i == field and entry < MAX_COUNT) if i < 4 else entry for i, entry in enumerate(terms))

    @action(8)
    def sell(self, data):
        """A session from its open to its settlement, without a mistake: what ratings and disputes are made of.

        Seldom an operator is its own client.
        """
        service_id = data.draw(st.integers(1, 4), label="service")
        service = self.model.registry.services[service_id]
        operator = self.model.registry.nodes[service.node_id].operator
        client = data.draw(st.sampled_from([*CLIENTS, *CLIENTS, operator]), label="client")
        terms = (service_id, max(service.price, 50), service.price, 60, EMPTY, self.driver.choice(client))
        opened = self.driver.act("manager", "open", client, *terms)
        if opened.reason is None:
            self.latest[client] = terms[-1]
            paid = data.draw(st.sampled_from([0, 20, 50]), label="paid")
            calls = data.draw(st.integers(0, 3), label="calls")
            voucher = self.driver.voucher(opened.answer, paid, calls)
            self.driver.act("manager", "settle", operator, opened.answer, paid, calls, voucher)

    @action(6, when=lambda self: self.latest)
    def retry(self, data):
        """The latest draw once more, with terms that fit, or with one that does not: attempts go up, the rest stays."""
        client = data.draw(st.sampled_from(sorted(self.latest)), label="client")
        draw, world = self.latest[client], self.model.world
        older = draw.snapshot_block - 1
        variants = [
            draw._replace(attempt=draw.attempt + 1),
            draw._replace(attempt=draw.attempt + 1, decision=b"\4" * 32),
            draw,
            draw._replace(attempt=draw.attempt + 1, price_cap=draw.price_cap ^ 1),
            draw._replace(attempt=draw.attempt + 1, policy=draw.policy ^ 1),
            draw._replace(attempt=draw.attempt + 1, snapshot_block=older, snapshot_hash=world.block_hash(older)),
            draw._replace(attempt=draw.attempt + 1, nonce=draw.nonce - 1) if draw.nonce else draw,
        ]
        choice = data.draw(st.sampled_from(variants), label="choice")
        service_id = data.draw(st.integers(1, 4), label="service")
        price = self.model.registry.services[service_id].price
        terms = (service_id, price + 1, price, 60, EMPTY, choice)
        if self.driver.act("manager", "open", client, *terms).reason is None:
            self.latest[client] = choice

    @action(3, when=lambda self: self.model.manager.sessions)
    def top_up(self, data):
        session_id = self.session(data, self.in_status(OPEN))
        amount = mostly(data, st.integers(1, 300), AMOUNTS, "amount")
        self.driver.act("manager", "top_up", self.anyone(data), session_id, amount)

    def bad_voucher(self, data, session_id, amount, calls):
        """None, one signed by another, one tampered with, or one for something else."""
        others = [i for i in self.model.manager.sessions if i != session_id] or [b"\7" * 32]
        other_session = data.draw(st.sampled_from(others), label="other session")
        signer = self.model.manager.sessions[session_id].signer
        good = self.driver.voucher(session_id, amount, calls)
        kinds = [
            None,
            good._replace(sound=False),
            good._replace(signer=self.anyone(data)),
            self.driver.voucher(session_id, amount + 1, calls),
            self.driver.voucher(session_id, amount, calls + 1),
            self.driver.voucher(other_session, amount, calls, signer),
        ]
        return data.draw(st.sampled_from(kinds), label="voucher")

    @action(7, when=lambda self: self.model.manager.living())
    def settle(self, data):
        """An open session mostly, by a voucher mostly; all of the deposit and one unit more are tried."""
        session_id = self.session(data, self.in_status(OPEN, CLOSING))
        session = self.model.manager.sessions.get(session_id)
        if session is None:
            self.driver.act("manager", "settle", self.anyone(data), session_id, 0, 0, None)
            return
        edges = st.sampled_from([0, session.deposit, session.deposit + 1])
        amount = mostly(data, st.integers(0, session.deposit), edges, "amount")
        calls, kind = data.draw(CALLS, label="calls"), data.draw(st.integers(0, 5), label="4 is bad, 5 settles at zero")
        signature = self.driver.voucher(session_id, amount, calls)
        if kind == 4:
            signature = self.bad_voucher(data, session_id, amount, calls)
        elif kind == 5:
            amount, calls, signature = 0, 0, None
        sender = self.sender(data, session.operator)
        self.driver.act("manager", "settle", sender, session_id, amount, calls, signature)

    @action(4, when=lambda self: self.model.manager.living())
    def request_close(self, data):
        session_id = self.session(data, self.in_status(OPEN))
        session = self.model.manager.sessions.get(session_id)
        clients = [session.client] if session else []
        self.driver.act("manager", "request_close", self.sender(data, *clients), session_id)

    @action(7, when=lambda self: self.model.manager.living())
    def end_without_voucher(self, data):
        """By anyone, when the time has come or the second before."""
        likely = self.in_status(*data.draw(st.sampled_from([(CLOSING,), (OPEN, CLOSING)]), label="statuses"))
        session_id = self.session(data, likely or self.in_status(OPEN))
        session = self.model.manager.sessions.get(session_id)
        closing = bool(session) and session.status == CLOSING and data.draw(st.integers(0, 3), label="3 expires") < 3
        likely, seldom = ("finish_close", "expire") if closing else ("expire", "finish_close")
        function = mostly(data, st.just(likely), st.just(seldom), "function")
        call = ("manager", function, self.anyone(data), session_id)
        if session and data.draw(st.booleans(), label="wait for it"):
            end = session.closes_at if closing else session.expires_at + self.model.manager.challenge_period
            self.act_around(end, *call)
        else:
            self.driver.act(*call)

    @action(4, when=lambda self: any(self.model.manager.credits.values()) or any(self.model.court.credits.values()))
    def withdraw(self, data):
        """Credit of either kind, to anyone."""
        parts = [part for part in ("manager", "court") if any(getattr(self.model, part).credits.values())]
        part = data.draw(st.sampled_from(parts), label="part")
        paying = getattr(self.model, part)
        owed = [account for account, credit in paying.credits.items() if credit]
        contracts = [EMPTY, paying.address, self.model.registry.address]
        to = mostly(data, st.sampled_from(self.model.accounts), st.sampled_from(contracts), "to")
        self.driver.act(part, "withdraw", self.sender(data, *owed), to)
