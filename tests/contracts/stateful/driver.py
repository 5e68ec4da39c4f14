"""Sends every call to the contracts and to the model, and holds the one to the other."""

import pickle
from dataclasses import astuple

import boa
from eth_utils import keccak

from tests.contracts.stateful import deployment as base
from tests.contracts.stateful.chain import Outcome
from tests.contracts.stateful.deployment import CATEGORY, OTHER_CATEGORY
from tests.contracts.stateful.signing import signed
from tests.model.core import EMPTY, NO_CAP, Message, Reverted, Signature
from tests.model.sessions import Choice
from tests.model.suite import frequent_views, lens_order, lens_weights, rare_views
from tests.model.token import CALLING, PLAIN


class Driver:
    """One run: a deployment with three nodes, its model, and what must be equal in both after every action."""

    def __init__(self, one_token=False, price_cap=NO_CAP, seed=bytes(32), bond=base.BOND):
        self.chain, self.model, self.wallet = base.fresh(one_token, bond)
        self.price_cap, self.seed = price_cap, seed
        self.expected, self.plain_after = {}, {}
        self.counts = {"done": 0, "reverted": 0}
        self.undo = boa.env.anchor()
        self.undo.__enter__()
        self.set_clock()

    def close(self):
        """End the run: compare everything once more, and undo it."""
        try:
            self.compare(everything=True)
        finally:
            self.undo.__exit__(None, None, None)

    def act(self, part, function, sender, *arguments, check=True):
        """Do one thing in both worlds: both do the same, or both refuse it for the same reason."""
        before = pickle.dumps(self.model)
        outcome = self.chain.send(part, function, sender, *self.as_bytes(arguments))
        wanted = self.wanted(part, function, sender, arguments)
        if wanted.reason is not None:
            self.model = pickle.loads(before)
        self.counts["done" if wanted.reason is None else "reverted"] += 1
        assert outcome == wanted, f"{part}.{function}{arguments} by {sender}\nis      {outcome}\nmust be {wanted}"
        self.calm_down()
        if check:
            self.compare()
        return wanted

    def wanted(self, part, function, sender, arguments):
        """What the model says of a call."""
        self.model.world.events.clear()
        try:
            answer = getattr(getattr(self.model, part), function)(sender, *arguments)
        except Reverted as reverted:
            return Outcome(reverted.args[0])
        return Outcome(None, answer, tuple(self.model.world.events))

    def as_bytes(self, argument):
        """Arguments as the contracts take them: signatures become bytes."""
        if argument is None or isinstance(argument, Signature):
            return signed(argument, self.model.world.chain_id, base.KEYS)
        if isinstance(argument, (tuple, list)):
            return (
                type(argument)(*map(self.as_bytes, argument))
                if hasattr(argument, "_fields")
                else [self.as_bytes(part) for part in argument]
            )
        return argument

    # Time

    def set_clock(self, now=None, block=None):
        """Move time and blocks forward."""
        world = self.model.world
        world.now = world.now if now is None else now
        world.block = world.block if block is None else block
        self.chain.set_time(world.now, world.block, world.block_hash)

    def wait(self, seconds):
        self.set_clock(now=self.model.world.now + seconds)

    def mine(self, blocks):
        self.set_clock(block=self.model.world.block + blocks)

    def reorg(self):
        """Give every block another hash."""
        self.model.world.fork += 1
        self.set_clock()

    # Tokens

    def set_mode(self, token, mode, lasting, hook=None):
        """Make a token hostile for so many actions. A hook is what mode CALLING calls: part, function, arguments."""
        target, data, call = EMPTY, b"", None
        if mode == CALLING:
            part, function, arguments = hook
            target = str(self.chain.parts[part].address)
            data = getattr(self.chain.parts[part], function).prepare_calldata(*self.as_bytes(arguments))
            call = (getattr(self.model, part), function, arguments)
        self.chain.send(token, "set_mode", EMPTY, mode, target, data)
        getattr(self.model, token).set_mode(EMPTY, mode, call)
        self.plain_after[token] = lasting
        self.compare()

    def calm_down(self):
        """Make tokens plain again whose time as hostile ones is over."""
        for token, left in list(self.plain_after.items()):
            self.plain_after[token] = left - 1
            if left <= 0:
                del self.plain_after[token]
                self.chain.send(token, "set_mode", EMPTY, PLAIN, EMPTY, b"")
                getattr(self.model, token).set_mode(EMPTY, PLAIN)

    # What clients sign and choose

    def choice(self, client, **changes):
        """A new draw on the previous block."""
        world = self.model.world
        number = changes.get("snapshot_block", world.block - 1)
        draw = (1, self.model.manager.draws(client), 0, number, world.block_hash(number), NO_CAP, b"\1" * 32)
        return Choice(*draw)._replace(**changes)

    def voucher(self, session_id, amount, calls, signer=None):
        signer = signer or self.model.manager.sessions[session_id].signer
        return Signature(signer, Message("Voucher", self.model.manager.address, (session_id, amount, calls)))

    def disputed(self, dispute_id):
        """The session of a dispute, by which the arbiter decides it."""
        return self.model.court.disputes[dispute_id].session_id

    def rating(self, session_id, score, signer):
        return Signature(signer, Message("Rating", self.model.reputation.address, (session_id, score)))

    def signed_record(self, record, signer):
        return Signature(signer, Message("Experience", self.model.experience.address, tuple(record)))

    def authorization(self, client, terms, authorization):
        """A client's authorisation that carries the terms of `open`."""
        manager = self.model.manager
        fields = (client, manager.address, *authorization, manager.terms_hash(client, *terms))
        return Signature(client, Message("ReceiveWithAuthorization", self.model.payment.address, fields))

    # What must be equal

    def compare(self, everything=False):
        """Hold every answer of the contracts to the model's, and the balances to the books."""
        self.chain.forget_what_changed()
        if everything:
            self.chain.read.clear()
        rare = rare_views(self.model) | self.draws()
        changed = {view: answer for view, answer in rare.items() if everything or self.expected.get(view) != answer}
        self.expected = rare
        views = frequent_views(self.model) | lens_weights(self.model, CATEGORY, self.price_cap) | changed
        wrong = [f"{v}\nis      {self.chain.ask(v)}\nmust be {a}" for v, a in views.items() if self.chain.ask(v) != a]
        assert not wrong, "\n".join(wrong)
        self.check_solvency()

    def draws(self):
        """The order of the run's draw, and the weights of the other category: asked when they must change."""
        order = lens_order(self.model, CATEGORY, self.price_cap, self.seed)
        return order | lens_weights(self.model, OTHER_CATEGORY, self.price_cap)

    def check_solvency(self):
        """Every contract holds what its books say and what was given to it, no more and no less."""
        model = self.model
        owed = {(id(model.payment), model.manager.address): model.manager.owed()}
        owed |= {(id(model.stake), part.address): part.owed() for part in (model.registry, model.court)}
        for token in (model.stake, model.payment):
            for address in (model.registry.address, model.manager.address, model.court.address):
                books = owed.get((id(token), address), 0)
                assert token.balance(address) == books + token.gifts.get(address, 0), address

    def check_page(self, category, start, count):
        """A page of candidates is that window of the listings, without those that are not routable."""
        window = self.model.registry.listed(category)[start : start + count]
        wanted = [tuple(c) for c in map(astuple, self.model.candidates(category)) if c[0] in window]
        outcome = self.chain.send("lens", "candidates", EMPTY, keccak(text=category), start, count)
        assert outcome == Outcome(None, wanted)

    def check_draw(self, category, price_cap, seed, length):
        """Weights and order of any draw are those of the Python implementation; no more than sixteen are drawn."""
        key = keccak(text=category)
        weights = self.chain.send("lens", "weights", EMPTY, key, price_cap).answer
        assert weights == self.model.weights(category, price_cap)
        order = list(self.model.ranking(category, seed, price_cap).order)[:length]
        wanted = Outcome(None, order) if length <= 16 else Outcome("lens: order too long")
        assert self.chain.send("lens", "order", EMPTY, key, price_cap, seed, length) == wanted
