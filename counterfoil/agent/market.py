"""What an agent can choose from: by its index, and where that is out of reach, by the chain and its own memory."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from counterfoil.agent.memory import Memory
from counterfoil.agent.rating import median
from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import NodeRegistry, RoutingLens
from counterfoil.directory import Directory, LiveListings
from counterfoil.market import LiveMarket, Snapshot
from counterfoil.routing.experience import sentence
from counterfoil.routing.lottery import Slate, category_id
from indexer import query
from indexer.errors import IndexerError
from indexer.query import AsOf, Store


class ReplacedError(Exception):
    """The chain moved on from the session or from what was chosen on: nobody's fault, and a new draw is due."""


INDEX_POLLS: Final = 100
INDEX_POLL_SECONDS: Final = 0.1
MOST_BEHIND: Final = 32
"""How many blocks an index may be behind the chain; a contract takes a snapshot of at most 256."""
MEDIAN_SAMPLE: Final = 100
PLACES: Final = 5


@dataclass(frozen=True, slots=True)
class Place:
    """Where a service is: its node, who runs that, and where it answers."""

    node_id: int
    operator: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class Found:
    """A service that is best for a task or a need, and the sentence that says why."""

    service_id: int
    category: str
    sentence: str


class Market(Protocol):
    """What a runner asks."""

    def snapshot(self, category: str) -> Snapshot:
        """Give the candidates of a category after a block of the chain."""

    def place(self, service_id: int, block: int) -> Place | None:
        """Say where a service is."""

    def best(self, task: str, need: str) -> Sequence[Found]:
        """Rank services for a task and a need, the best first."""

    def category_of(self, service_id: int) -> str | None:
        """Give a service's category."""

    def median(self, category: str) -> int | None:
        """Give the median latency of a category in milliseconds, None where nobody knows."""


class IndexMarket:
    """An index of one's own that follows the chain."""

    def __init__(self, store: Store, chain: Chain) -> None:
        self._store = store
        self._chain = chain
        self._market = LiveMarket(store)
        self._directory = Directory(store)

    def why_not(self) -> str:
        """Say in a clause why the index cannot be asked, "" where it can: behind a reorg it catches up."""
        for _ in range(INDEX_POLLS):
            as_of, head = query.as_of(self._store), self._chain.head()
            if head.number - as_of.block > MOST_BEHIND:
                return f"the index is at block {as_of.block} and the chain at {head.number}"
            if self._is_on_chain(as_of, head.number):
                return ""
            time.sleep(INDEX_POLL_SECONDS)
        return "the index does not follow this chain"

    def snapshot(self, category: str) -> Snapshot:
        """The candidates after the index's newest block."""
        return self._market.snapshot(category)

    def place(self, service_id: int, block: int) -> Place | None:
        """Say where a service is."""
        view = query.service(self._store, service_id, block).value
        return None if view is None else Place(view.node_id, view.operator, view.endpoint)

    def best(self, task: str, need: str) -> Sequence[Found]:
        """Rank by what others and this agent attested; a service that nobody tried for this is of any category."""
        page = LiveListings(self._directory).best(task, need, routable=True, after=0, limit=PLACES).value
        tried = [(one.view, one.match, one.match.label) for one, _ in page.items]
        return [
            Found(view.service_id, view.category, sentence(label, match.summary))
            for view, match, label in tried
            if label is not None
        ]

    def category_of(self, service_id: int) -> str | None:
        """Give a service's category."""
        view = query.service(self._store, service_id).value
        return None if view is None else view.category

    def _is_on_chain(self, as_of: AsOf, head: int) -> bool:
        return as_of.block <= head and self._chain.block(as_of.block).hash == as_of.hash

    def median(self, category: str) -> int | None:
        """The median of the latest records of the category's services."""
        services = query.services(self._store, category=category).value.items
        facts = [
            recorded.fact
            for service in services
            for recorded in query.experience_of(
                self._store, service_id=service.service_id, limit=MEDIAN_SAMPLE
            ).value.items
        ]
        return median([fact.latency_ms for fact in facts if fact.worked])


class ChainMarket:
    """The chain itself for candidates, and one's own memory for what is good."""

    def __init__(self, chain: Chain, memory: Memory) -> None:
        self._chain = chain
        self._memory = memory
        self._registry = NodeRegistry(chain)
        self._lens = RoutingLens(chain)

    def snapshot(self, category: str) -> Snapshot:
        """The candidates after the chain's head, by the lens."""
        head = self._chain.head()
        size = self._registry.category_size(category_id(category), head.number)
        candidates = self._lens.candidates(category_id(category), size, head.number)
        if self._chain.block(head.number).hash != head.hash:
            raise ReplacedError
        as_of = AsOf(self._chain.chain_id, head.number, head.hash, head.timestamp, finalized=False, behind=0)
        return Snapshot(as_of, category, Slate(candidates))

    def place(self, service_id: int, block: int) -> Place | None:
        """Say where a service is."""
        listing = self._registry.listing(service_id, block)
        if not listing.node_id:
            return None
        return Place(listing.node_id, listing.operator, self._registry.node(listing.node_id, block).endpoint)

    def best(self, task: str, need: str) -> Sequence[Found]:
        """Rank by what this agent's own runs learned."""
        return [Found(one.service_id, one.category, one.sentence) for one in self._memory.best(task, need)[:PLACES]]

    def category_of(self, service_id: int) -> str | None:
        """Give the category that own runs remember of a service: the chain knows its hash alone."""
        return self._memory.category_of(service_id)

    def median(self, category: str) -> int | None:
        """The median of own runs."""
        return self._memory.median_latency(category)


class Markets:
    """The index where it can be asked and follows the chain, else the chain itself."""

    def __init__(self, index: IndexMarket | None, chain: ChainMarket) -> None:
        self._index, self._chain = index, chain

    def now(self) -> tuple[Market, str]:
        """Give whom to ask now, and in a clause why it is not the index, "" where it is."""
        if self._index is None:
            return self._chain, "there is no index"
        try:
            why = self._index.why_not()
        except IndexerError as error:
            why = f"the index cannot be asked: {type(error).__name__}"
        return (self._chain, why) if why else (self._index, "")
