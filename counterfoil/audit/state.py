"""What the chain says: sessions by their logs, markets by the lens at a block."""

from collections.abc import Iterator
from typing import Any, Final

from web3.exceptions import BlockNotFound

from counterfoil.audit.model import SessionFacts
from counterfoil.chain.connection import Chain, asking
from counterfoil.chain.contracts import (
    LENS_LIMIT,
    NodeRegistry,
    RoutingLens,
    SessionManager,
    SessionStatus,
    Weighed,
    word,
)
from counterfoil.chain.errors import ChainError
from counterfoil.routing.lottery import Candidate

_STEP: Final = 2000


class StateSource:
    """Reads one chain. What is asked twice of one block is remembered under its hash, so a reorg forgets it."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self._registry = NodeRegistry(chain)
        self._manager = SessionManager(chain)
        self._lens = RoutingLens(chain)
        self._markets: dict[tuple[str, str], tuple[Candidate, ...]] = {}
        self._weights: dict[tuple[str, str, int | None], Weighed] = {}
        self._categories: dict[int, str] = {}
        self._nodes: dict[int, int] = {}

    def facts(self, session_id: str, hint: int | None = None) -> SessionFacts | None:
        """A session as its SessionOpened event tells it; `hint` is the block to look into first."""
        topics = [self._topic(), session_id]
        if hint is not None:
            found = self._logs(topics, hint, hint)
            if found:
                return self._facts(found[0])
        if self._manager.session(session_id).status == SessionStatus.NONE:
            return None
        return next((self._facts(log) for log in self._search(topics)), None)

    def facts_between(self, first: int, last: int) -> Iterator[SessionFacts]:
        """Every session opened in a range of blocks, in order."""
        begin = max(first, self.chain.deployment.contracts["SessionManager"].block)
        end = min(last, self.chain.head().number)
        for start in range(begin, end + 1, _STEP):
            for log in self._logs([self._topic()], start, min(end, start + _STEP - 1)):
                yield self._facts(log)

    def block_hash(self, number: int) -> str | None:
        """A block's hash. Raises ChainError when the chain has no such block."""
        return self.chain.block(number).hash

    def candidates(self, facts: SessionFacts) -> tuple[Candidate, ...]:
        """The routable listings of the session's category at its snapshot. Raises ChainError if that block changes."""
        block = facts.snapshot_block
        block_hash = self.chain.block(block).hash
        key = (facts.category_id, block_hash)
        if key not in self._markets:
            category = word(facts.category_id)
            size = self._registry.category_size(category, block)
            found = self._lens.candidates(category, size, block)
            if self.chain.block(block).hash != block_hash:
                raise ChainError(f"Block {block} was replaced while it was read: audit again.")
            self._markets[key] = found
        return self._markets[key]

    def category_size(self, facts: SessionFacts) -> int:
        """How many listings the category had at the snapshot, routable or not."""
        return self._registry.category_size(word(facts.category_id), facts.snapshot_block)

    def fits_lens(self, size: int) -> bool:
        """Whether the lens ranks a category of that size."""
        return size <= LENS_LIMIT

    def weights(self, facts: SessionFacts) -> Weighed:
        """The lens's own terms at the snapshot."""
        key = (facts.category_id, self.chain.block(facts.snapshot_block).hash, facts.cap)
        if key not in self._weights:
            self._weights[key] = self._lens.weights(word(facts.category_id), facts.cap, facts.snapshot_block)
        return self._weights[key]

    def order(self, facts: SessionFacts, length: int) -> tuple[int, ...]:
        """The lens's own order at the snapshot."""
        seed = word(facts.draw_seed)
        return self._lens.order(word(facts.category_id), facts.cap, seed, length, facts.snapshot_block)

    def node_of(self, service_id: int) -> int:
        """The node of a service, which never changes."""
        if service_id not in self._nodes:
            self._nodes[service_id] = self._registry.listing(service_id).node_id
        return self._nodes[service_id]

    def _topic(self) -> str:
        return str(self._manager.contract.events.SessionOpened().topic)

    def _search(self, topics: list[str]) -> Iterator[Any]:
        first = self.chain.deployment.contracts["SessionManager"].block
        last = self.chain.head().number
        try:
            yield from self._logs(topics, first, last)
        except ChainError:
            # Many RPCs refuse long ranges: newest first, because sessions are mostly audited soon.
            for end in range(last, first - 1, -_STEP):
                yield from self._logs(topics, max(first, end - _STEP + 1), end)

    def _logs(self, topics: list[str], first: int, last: int) -> list[Any]:
        wanted: Any = {
            "address": self._manager.contract.address,
            "topics": topics,
            "fromBlock": first,
            "toBlock": last,
        }
        with asking(f"The sessions opened in blocks {first} to {last}"):
            try:
                found = self.chain.web3.eth.get_logs(wanted)
                return [self._manager.contract.events.SessionOpened().process_log(log) for log in found]
            except BlockNotFound:
                return []

    def _facts(self, log: Any) -> SessionFacts:  # noqa: ANN401
        with asking("A SessionOpened log"):
            return self._facts_of(dict(log["args"]), int(log["blockNumber"]))

    def _facts_of(self, arguments: dict[str, Any], opened_block: int) -> SessionFacts:
        service_id = arguments["service_id"]
        if service_id not in self._categories:
            self._categories[service_id] = self._registry.listing(service_id).category_id
        return SessionFacts(
            session_id=_hex(arguments["session_id"]),
            client=arguments["client"].lower(),
            service_id=service_id,
            node_id=arguments["node_id"],
            operator=arguments["operator"].lower(),
            signer=arguments["signer"].lower(),
            price=arguments["price"],
            max_price=arguments["max_price"],
            policy=arguments["policy"],
            nonce=arguments["nonce"],
            attempt=arguments["attempt"],
            snapshot_block=arguments["snapshot_block"],
            snapshot_hash=_hex(arguments["snapshot_hash"]),
            draw_seed=_hex(arguments["draw_seed"]),
            price_cap=arguments["price_cap"],
            decision=_hex(arguments["decision"]),
            opened_block=opened_block,
            category_id=self._categories[service_id],
        )


def _hex(data: bytes) -> str:
    return "0x" + bytes(data).hex()
