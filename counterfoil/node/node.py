"""One registered node: the parts that serve its calls and settle its sessions."""

from dataclasses import dataclass
from pathlib import Path

from eth_account.signers.local import LocalAccount

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import SessionManager
from counterfoil.chain.sender import Sender
from counterfoil.node.book import VoucherBook
from counterfoil.node.gate import Gate
from counterfoil.node.heartbeat import Heart
from counterfoil.node.metrics import Metrics
from counterfoil.node.proxy import Proxy
from counterfoil.node.reading import Reader
from counterfoil.node.settlement import Settler
from counterfoil.node.upstream import Bounds, Upstreams
from counterfoil.node.watch import Watch
from indexer.settings import Settings

_SPARE_CONNECTIONS = 4
"""For questions about models, beside the calls."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node's parts, put together by `open_node`."""

    node_id: int
    settings: Settings
    book: VoucherBook
    metrics: Metrics
    gate: Gate
    upstreams: Upstreams
    proxy: Proxy
    settler: Settler
    watch: Watch
    heart: Heart

    def close(self) -> None:
        """Close the book."""
        self.book.close()


def open_node(
    chain: Chain, account: LocalAccount, node_id: int, settings: Settings, authorization: str | None = None
) -> Node:
    """Open a node's book and put its parts together; `authorization` is sent to the upstreams.

    Raises UserError where the node does not exist or another account runs it, LockedError where it is served already,
    and BookError.
    """
    reader = Reader(chain, settings)
    sender = Sender(chain, account)
    reader.check_operator(node_id, sender.address)
    book = open_book(chain, settings.home, node_id)
    metrics = Metrics()
    settler = Settler(reader, sender, book, metrics, settings)
    watch = Watch(node_id, sender.address, reader, book, settler, metrics, settings)

    def kept() -> None:
        if settler.is_above_limit():
            watch.wake()

    gate = Gate(node_id, account, reader, book, settings.upstreams(), kept)
    bounds = Bounds(settings.node_upstream_seconds, settings.node_call_seconds, settings.node_max_answer_bytes)
    upstreams = Upstreams(bounds, settings.node_max_calls + _SPARE_CONNECTIONS, authorization)
    proxy = Proxy(gate, upstreams, metrics, settings.node_max_calls)
    heart = Heart(node_id, account, reader, proxy, upstreams, metrics, settings)
    return Node(node_id, settings, book, metrics, gate, upstreams, proxy, settler, watch, heart)


def book_path(home: Path, node_id: int) -> Path:
    """Where a node keeps its vouchers."""
    return home / "nodes" / f"{node_id}.sqlite"


def open_book(chain: Chain, home: Path, node_id: int) -> VoucherBook:
    """A node's vouchers. Raises LockedError while another process holds them, and BookError."""
    genesis, manager = chain.deployment.genesis_hash, SessionManager(chain)
    identity = f"node {node_id} of chain {chain.chain_id} from {genesis}, sessions at {manager.address}"
    return VoucherBook(book_path(home, node_id), identity)
