"""What an agent works with: a wallet, the contracts, what it may choose from and spend, and where it keeps things."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Final

from eth_account.signers.local import LocalAccount

from counterfoil.agent.journal import Journal
from counterfoil.agent.market import ChainMarket, IndexMarket, Markets
from counterfoil.agent.memory import Memory
from counterfoil.agent.node_client import MAX_ANSWER, NodeClient
from counterfoil.agent.notes import NoteBook
from counterfoil.agent.spending import SpendBook, SpendPolicy
from counterfoil.agent.wallet import Wallet
from counterfoil.chain.connection import Chain, connect
from counterfoil.chain.contracts import ExperienceLedger, ReputationLedger, SessionManager, Token
from counterfoil.receipt_store import ReceiptStore
from indexer.errors import IndexerError
from indexer.http import BoundedHttp
from indexer.query import Store, open_store
from indexer.settings import Settings

FOLDER: Final = "agent"


@dataclass(frozen=True, slots=True)
class Desk:
    """One agent's tools. `http` bounds each request to a node."""

    wallet: Wallet
    manager: SessionManager
    reputation: ReputationLedger
    experience: ExperienceLedger
    token: Token
    markets: Markets
    receipts: ReceiptStore
    notes: NoteBook
    journal: Journal
    memory: Memory
    spending: SpendBook
    policy: SpendPolicy
    http: BoundedHttp
    allow_private: bool = False

    @property
    def chain(self) -> Chain:
        """The chain that everything is on."""
        return self.wallet.chain

    @property
    def address(self) -> str:
        """The wallet's address, in lower case."""
        return self.wallet.address

    def node(self, endpoint: str) -> NodeClient:
        """A client of the node at an endpoint."""
        return NodeClient(endpoint, self.http, self.allow_private)


def desk(
    settings: Settings, chain: Chain, store: Store | None, account: LocalAccount, relayer: LocalAccount | None = None
) -> Desk:
    """Lay out the tools of an agent; `store` is its index, None where it has none."""
    folder = settings.home / FOLDER
    memory = Memory(folder / "memory.sqlite")
    return Desk(
        wallet=Wallet(chain, account, folder, relayer),
        manager=SessionManager(chain),
        reputation=ReputationLedger(chain),
        experience=ExperienceLedger(chain),
        token=Token(chain, chain.deployment.contracts["SessionManager"].arguments["payment_token"]),
        markets=Markets(IndexMarket(store, chain) if store else None, ChainMarket(chain, memory)),
        receipts=ReceiptStore(settings.home / "receipts"),
        notes=NoteBook(settings.home / "notes"),
        journal=Journal(folder / "journal.sqlite"),
        memory=memory,
        spending=SpendBook(folder / "spending.sqlite"),
        policy=policy_of(settings),
        http=BoundedHttp(seconds=settings.agent_call_seconds, max_bytes=MAX_ANSWER),
        allow_private=settings.agent_allow_private == "yes",
    )


def policy_of(settings: Settings) -> SpendPolicy:
    """The hard caps of the settings; 0 there is no cap."""
    return SpendPolicy(
        per_call=settings.agent_max_per_call or None,
        per_run=settings.agent_max_per_run or None,
        per_day=settings.agent_max_per_day or None,
        per_operator=settings.agent_max_per_operator or None,
    )


@contextmanager
def open_desk(settings: Settings, account: LocalAccount, relayer: LocalAccount | None = None) -> Iterator[Desk]:
    """Reach the chain, and the index where it can be opened, and lay out the tools."""
    with ExitStack() as stack:
        chain = stack.enter_context(closing(connect(settings)))
        made = desk(settings, chain, _store(settings, stack), account, relayer)
        stack.callback(made.http.close)
        yield made


def _store(settings: Settings, stack: ExitStack) -> Store | None:
    # An index that is not there is no reason to stop: the chain and one's own memory answer then, and receipts say so.
    try:
        return stack.enter_context(open_store(settings.database_url()))
    except IndexerError:
        return None
