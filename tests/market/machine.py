"""An index that lives through blocks, reorgs and rebuilds, and markets in memory that must agree with it."""

from contextlib import ExitStack

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from counterfoil.market import LiveMarket, snapshot
from counterfoil.routing.lottery import Candidate, rank
from indexer import events as ev
from indexer import rows
from indexer.project import PlacedEvent, fold_block
from indexer.source import Source
from indexer.store.writer import open_writer
from tests.indexer.model import (
    COURT,
    Chain,
    MemoryState,
    Node,
    listed,
    opened,
    rated,
    registered,
    settled,
)
from tests.support.markets import slow_order, slow_weight

NODES = st.integers(1, 5)
SERVICES = st.integers(1, 8)
CATEGORIES = ("data:crypto", "llm:completion")
STAKES = st.sampled_from([0, 499, 999, 1000, 1001, 4321, 10**12, 2**128 - 1])
PRICES = st.sampled_from([0, 1, 7, 10, 11, 12, 13, 100, 2**128 - 1])
SESSIONS = st.integers(1, 6)
CAPS = (None, 0, 10, 11, 12, 2**256 - 1)


def events():
    return st.one_of(
        st.builds(listed, SERVICES, NODES, st.sampled_from(CATEGORIES), PRICES).map(lambda event: [event]),
        st.builds(registered, NODES, STAKES),
        st.builds(ev.StakeChanged, NODES, STAKES, st.integers(0, 5), st.just(0)).map(lambda event: [event]),
        st.builds(slashed, NODES, STAKES),
        st.builds(ev.PriceChanged, SERVICES, PRICES).map(lambda event: [event]),
        st.builds(ev.ServiceStatusChanged, SERVICES, st.booleans()).map(lambda event: [event]),
        st.builds(opened, SESSIONS, NODES, SERVICES).map(lambda event: [event]),
        st.builds(settled, SESSIONS, NODES).map(lambda event: [event]),
        st.builds(rated, SESSIONS, NODES, st.integers(0, 100)).map(lambda event: [event]),
        st.builds(ev.EndpointChanged, NODES, st.just("http://elsewhere")).map(lambda event: [event]),
    )


def slashed(node_id, stake):
    return [ev.StakeSlashed(node_id, 1, 0, COURT), ev.StakeChanged(node_id, stake, 0, 0)]


def blocks(most=3):
    """Some blocks, each a list of events."""
    block = st.lists(events(), max_size=5).map(lambda several: [event for some in several for event in some])
    return st.lists(block, min_size=1, max_size=most)


class MarketMachine(RuleBasedStateMachine):
    """`always` looks after every step, `seldom` when a rule says so, so that it finds several steps at once."""

    new_database = None

    def __init__(self):
        super().__init__()
        self.stack = ExitStack()

    @initialize(late=st.booleans())
    def deploy(self, late):
        self.chain = Chain()
        self.registry = self.chain.blocks[1]["events"][0]
        if late:
            self.chain.rewind(0)
            self.chain.append()
        self.late = late
        place = self.stack.enter_context(self.new_database())
        self.writer = self.stack.enter_context(open_writer(place, self.chain.deployment()))
        self.always, self.seldom = LiveMarket(self.writer.store), LiveMarket(self.writer.store)
        self.append(1)
        self.mine([registered(1) + registered(2) + registered(3), [listed(i, i, price=9 + i) for i in (1, 2, 3)]])

    def append(self, first):
        fetched = Source(Node(self.chain), self.writer.deployment).fetch(first, self.chain.head)
        self.writer.append(fetched.headers, fetched.logs, None)

    @rule(new=blocks())
    def mine(self, new):
        first = self.chain.head + 1
        for block in new:
            self.chain.append(*block)
        self.append(first)

    @precondition(lambda self: self.late)
    @rule()
    def deploy_the_registry_late(self):
        known = [event for block in self.chain.blocks for event in block["events"]]
        if self.registry not in known:
            self.mine([[self.registry]])

    @rule(depth=st.integers(1, 4), new=blocks(most=6))
    def reorganise(self, depth, new):
        ancestor = max(1, self.chain.head - depth)
        self.chain.rewind(ancestor)
        for block in new:
            self.chain.append(*block)
        fetched = Source(Node(self.chain), self.writer.deployment).fetch(ancestor + 1, self.chain.head)
        self.writer.replace_from(ancestor, fetched.headers, fetched.logs, None)

    @rule()
    def rebuild(self):
        self.writer.rebuild()

    @rule(seed=st.binary(min_size=32, max_size=32))
    def look(self, seed):
        self.compare(self.seldom, seed)
        self.compare_with_the_slow_lottery(seed)

    @invariant()
    def agree(self):
        if hasattr(self, "always"):
            self.compare(self.always, self.chain.blocks[-1]["hash"][2:34].encode())

    def compare(self, live, seed):
        expected = self.folded()
        for category in (*CATEGORIES, "no:such"):
            found, asked = live.snapshot(category), snapshot(self.writer.store, category)
            assert found == asked
            assert (found.as_of.block, found.as_of.hash) == (self.chain.head, self.chain.blocks[-1]["hash"])
            assert list(found.candidates) == expected.get(category, [])
            for cap in CAPS:
                assert rank(found.candidates, seed, cap) == rank(tuple(asked.candidates), seed, cap)

    def compare_with_the_slow_lottery(self, seed):
        market = self.folded().get(CATEGORIES[0], [])
        for cap in CAPS:
            ranking = rank(self.seldom.snapshot(CATEGORIES[0]).candidates, seed, cap)
            kept = [one for one in market if one.service_id in ranking.kept]
            assert list(ranking.order) == slow_order(market, seed, cap)
            assert [terms.weight for terms in ranking.terms.values()] == [slow_weight(one, kept) for one in kept]

    def folded(self):
        """The routable candidates by category, from a fold of the chain's events over a dictionary."""
        state, min_stake, per_slot = MemoryState(), 0, 0
        for block in self.chain.blocks:
            placed = [PlacedEvent(index, event) for index, event in enumerate(block["events"])]
            state.apply(fold_block(block["number"], placed, state))
            for event in block["events"]:
                if isinstance(event, ev.RegistryDeployed):
                    min_stake, per_slot = event.min_stake, event.stake_per_slot
        found = {}
        for (kind, _), service in sorted(state.rows.items(), key=lambda item: (item[0][0].TABLE, item[0][1])):
            stake = state.get(rows.NodeStake, (service.node_id,)) if kind is rows.Service else None
            if stake is None or not service.active or stake.stake < min_stake:
                continue
            load = state.get(rows.NodeLoad, (service.node_id,))
            ratings = state.get(rows.NodeReputation, (service.node_id,))
            slots = stake.stake // per_slot if per_slot else 0
            inputs = (service.price, stake.stake, ratings.rating_sum, ratings.rating_count, load.active_sessions, slots)
            found.setdefault(service.category, []).append(Candidate(service.service_id, *inputs))
        return found

    def teardown(self):
        self.stack.close()
