"""Fifty small markets through the real contracts: staked, listed, opened, settled and rated, then drawn by the lens."""

from dataclasses import dataclass, field
from random import Random

import pytest
from eth_utils import keccak

from counterfoil.routing.lottery import Candidate, rank
from tests.contracts.lottery.markets import cap_word, terms_rows, words
from tests.contracts.world import DURATION, EMPTY, LOTTERY, MIN_STAKE, NO_CAP, STAKE_PER_SLOT, Choice

MARKETS = 50
MOST_NODES = 6
MOST_SESSIONS = 7


@dataclass
class Listing:
    """What a listing's candidate must be, kept beside the chain."""

    service_id: int
    node_id: int
    operator: object
    price: int
    stake: int
    active: bool = True
    scores: list = field(default_factory=list)
    open_sessions: int = 0

    @property
    def routable(self):
        return self.active and self.stake >= MIN_STAKE

    def candidate(self):
        return Candidate(
            service_id=self.service_id,
            price=self.price,
            stake=self.stake,
            rating_sum=sum(self.scores),
            rating_count=len(self.scores),
            active_sessions=self.open_sessions,
            max_concurrent=self.stake // STAKE_PER_SLOT,
        )


@dataclass
class Builder:
    """Sends transactions straight to anvil, which signs: Ape would take ten times as long."""

    world: object
    random: Random
    nonce: int = 0
    counts: tuple[int, int] = (2, 2)

    def send(self, sender, method, *arguments):
        transaction = {
            "from": sender.address,
            "to": method.contract.address,
            "data": "0x" + method.encode_input(*arguments).hex(),
            "gas": hex(5_000_000),
        }
        receipt = self.world.chain.provider.make_request("eth_sendTransactionSync", [transaction])
        assert receipt["status"] == "0x1", method

    def listing(self, category):
        world, random = self.world, self.random
        operator = random.choice((world.operator, world.rival))
        stake = random.choice((0, MIN_STAKE - 1, MIN_STAKE, random.randrange(MIN_STAKE, 20_000)))
        price = random.choice((0, 1, 1_000, random.randrange(2_000), 10**7))
        node_id, service_id = (count + 1 for count in self.counts)
        self.counts = (node_id, service_id)
        self.send(operator, world.registry.register_node, "http://node", stake)
        self.send(operator, world.registry.list_service, node_id, category, price, "")
        made = Listing(service_id, node_id, operator, price, stake)
        if random.randrange(8) == 0:
            self.send(operator, world.registry.set_active, service_id, False)
            made.active = False
        return made

    def choice(self):
        head = self.world.chain.provider.make_request("eth_getBlockByNumber", ["latest", False])
        snapshot_hash = bytes.fromhex(head["hash"].removeprefix("0x"))
        self.nonce += 1
        return Choice(LOTTERY, self.nonce - 1, 0, int(head["number"], 16), snapshot_hash, NO_CAP, b"\1" * 32)

    def session(self, listing, category_id):
        """Open one session; leave it open, or settle and rate it."""
        world, random, client = self.world, self.random, self.world.client
        choice, price = self.choice(), listing.price
        self.send(client, world.manager.open, listing.service_id, price, price, DURATION, EMPTY, choice)
        listing.open_sessions += 1
        session_id = world.session_id(choice, listing.service_id, listing.node_id, price, category_id=category_id)
        if random.randrange(3) == 0:
            return
        paid = price > 0
        signature = world.voucher(session_id, price, 1) if paid else b""
        self.send(listing.operator, world.manager.settle, session_id, price, int(paid), signature)
        listing.open_sessions -= 1
        score = random.randrange(101)
        self.send(client, world.reputation.rate, session_id, score)
        if paid or len(listing.scores) < 3:
            listing.scores.append(score)

    def market(self, category):
        """List some nodes in a category and run some sessions; a seventh of the operators unstakes at the end."""
        listings = [self.listing(category) for _ in range(self.random.randint(1, MOST_NODES))]
        routable = [listing for listing in listings if listing.routable]
        for _ in range(self.random.randint(0, MOST_SESSIONS) if routable else 0):
            self.session(self.random.choice(routable), keccak(text=category))
        for listing in routable:
            if self.random.randrange(7) == 0:
                amount = self.random.randint(1, listing.stake)
                self.send(listing.operator, self.world.registry.request_unstake, listing.node_id, amount)
                listing.stake -= amount
        return listings


@pytest.fixture
def builder(world, isolated):
    return Builder(world, Random("fifty markets"))


def test_lens__over_50_real_markets__agrees_with_the_model_and_with_python(world, builder):
    drawn = 0
    for number in range(MARKETS):
        category = f"market:{number}"
        category_id = keccak(text=category)
        expected = [one.candidate() for one in builder.market(category) if one.routable]
        found = [tuple(one) for one in world.lens.candidates(category_id, 0, 1_024)]
        assert found == [words(one) for one in expected], category
        prices = [one.price for one in expected]
        cap = builder.random.choice((None, 0, *prices))
        seed = builder.random.randbytes(32)
        ranking = rank(expected, seed, cap)
        relaxed, terms = world.lens.weights(category_id, cap_word(cap))
        assert (relaxed, [tuple(row) for row in terms]) == (ranking.relaxed, terms_rows(ranking)), category
        assert list(world.lens.order(category_id, cap_word(cap), seed, 16)) == list(ranking.order), category
        drawn += len(ranking.order)
    assert drawn > MARKETS
