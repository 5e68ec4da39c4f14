"""What a node reads from the chain: sessions as they are now and as they were some blocks ago, and the final block."""

import threading
from dataclasses import dataclass
from typing import Any, Final, cast

from eth_abi.abi import decode

from counterfoil.chain.connection import Block, Chain, asking
from counterfoil.chain.contracts import NodeRegistry, SessionManager, SessionState, SessionStatus
from counterfoil.chain.errors import ChainError
from counterfoil.node.book import Known
from indexer.errors import UserError
from indexer.settings import Settings

NO_FINALITY_DEPTH: Final = 256
"""How deep a block counts as final on a chain that names none: no session can be opened again after so many."""
_REMEMBERED: Final = 4096
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class View:
    """A session after the block `head`, as it was `node_confirmations` blocks before, and its category's id."""

    head: Block
    now: SessionState
    confirmed: SessionState
    category_id: str

    def known(self, session_id: str) -> Known:
        """What the book keeps of the session."""
        return Known(session_id, self.now.signer, self.now.price, self.head.number, self.head.timestamp)


@dataclass(frozen=True, slots=True)
class Event:
    """A log about a session; of an opening also the node and the operator, which are 0 and "" in any other.

    A log about an account gives its address as an id that no session has.
    """

    session_id: str
    opened_with: int = 0
    operator: str = ""


class Reader:
    """Reads one chain for one node. Raises ChainError; threads may share it."""

    def __init__(self, chain: Chain, settings: Settings) -> None:
        self.manager = SessionManager(chain)
        self.registry = NodeRegistry(chain)
        self.depth = settings.node_confirmations
        self._chain = chain
        self._opening = bytes.fromhex(self.manager.contract.events["SessionOpened"].topic.removeprefix("0x"))
        self._finality = settings.finality
        self._lock = threading.Lock()
        self._head: Block | None = None
        self._views: dict[str, View] = {}

    def head(self) -> Block:
        """The newest block."""
        return self._chain.head()

    def final(self, head: Block) -> Block:
        """The newest final block: as the setting `finality` says, or far below the head where the chain names none."""
        if not isinstance(self._finality, int):
            try:
                return self._chain.final(self._finality)
            except ChainError:  # chains without finality refuse the word
                return self._chain.block(max(0, head.number - NO_FINALITY_DEPTH))
        return self._chain.block(max(0, head.number - self._finality))

    def is_on_chain(self, number: int, block_hash: str) -> bool:
        """Whether that block is still the one of its number."""
        return self._chain.block(number).hash == block_hash

    def view(self, session_id: str) -> View:
        """A session as of the newest block. It is read once for each block, however often it is asked for."""
        for _ in range(_TRIES):
            head = self.head()
            found = self._remembered(head, session_id)
            if found:
                return found
            view = self._read(head, session_id)
            if self.is_on_chain(head.number, head.hash):
                self._remember(view, session_id)
                return view
        raise ChainError("The chain's newest blocks were replaced while they were read: try again in a moment.")

    def session(self, session_id: str, head: Block) -> SessionState:
        """A session after a block."""
        return self.manager.session(session_id, head.number)

    def events(self, first: int, last: int) -> list[Event]:
        """What SessionManager logged about sessions in these blocks."""
        where = cast(Any, {"address": self.manager.contract.address, "fromBlock": first, "toBlock": last})
        with asking(f"The logs of blocks {first} to {last}"):
            return [self._event(log) for log in self._chain.web3.eth.get_logs(where) if len(log["topics"]) > 1]

    def first_block(self) -> int:
        """The block before which no session can have been opened."""
        return self._chain.deployment.contracts[SessionManager.NAME].block

    def check_operator(self, node_id: int, operator: str) -> None:
        """Raise UserError unless the node exists and this account runs it."""
        if not 1 <= node_id <= self.registry.node_count():
            raise UserError(f"There is no node {node_id}: register one with `counterfoil node register`.")
        found = self.registry.node(node_id).operator
        if found != operator:
            raise UserError(f"Node {node_id} is run by {found}, and this key is {operator}: serve it with its own key.")

    def _event(self, log: Any) -> Event:  # noqa: ANN401
        session_id = "0x" + bytes(log["topics"][1]).hex()
        if bytes(log["topics"][0]) != self._opening:
            return Event(session_id)
        node_id, operator = decode(["uint256", "address"], bytes(log["data"])[:64])
        return Event(session_id, node_id, str(operator).lower())

    def _read(self, head: Block, session_id: str) -> View:
        now = self.manager.session(session_id, head.number)
        if now.status == SessionStatus.NONE:  # anybody may ask for any id: no further request for it
            return View(head, now, now, "")
        below = max(self.first_block(), head.number - self.depth)
        confirmed = self.manager.session(session_id, below) if self.depth else now
        return View(head, now, confirmed, self.registry.service(now.service_id, head.number).category_id)

    def _remembered(self, head: Block, session_id: str) -> View | None:
        with self._lock:
            if self._head != head or len(self._views) >= _REMEMBERED:
                self._head, self._views = head, {}
            return self._views.get(session_id)

    def _remember(self, view: View, session_id: str) -> None:
        with self._lock:
            if self._head == view.head:
                self._views[session_id] = view
