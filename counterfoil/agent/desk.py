"""What an agent works with: a wallet, the contracts, the index it asks, and where it keeps receipts."""

from dataclasses import dataclass

from eth_account.signers.local import LocalAccount

from counterfoil.agent.notes import NoteBook
from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import ExperienceLedger, ReputationLedger, SessionManager
from counterfoil.chain.sender import Sender
from counterfoil.market import LiveMarket
from counterfoil.receipt_store import ReceiptStore
from indexer.query import Store


@dataclass(frozen=True, slots=True)
class Desk:
    """One agent's tools; `call_seconds` bounds each request to a node."""

    account: LocalAccount
    sender: Sender
    manager: SessionManager
    reputation: ReputationLedger
    experience: ExperienceLedger
    store: Store
    market: LiveMarket
    receipts: ReceiptStore
    notes: NoteBook
    contracts: dict[str, str]
    call_seconds: float = 10
    allow_private: bool = False

    @property
    def address(self) -> str:
        """The wallet's address, in lower case."""
        return self.sender.address


def desk(
    chain: Chain, account: LocalAccount, store: Store, receipts: ReceiptStore, *, allow_private: bool = False
) -> Desk:
    """Lay out the tools of an agent on one chain."""
    return Desk(
        account=account,
        sender=Sender(chain, account),
        manager=SessionManager(chain),
        reputation=ReputationLedger(chain),
        experience=ExperienceLedger(chain),
        store=store,
        market=LiveMarket(store),
        receipts=receipts,
        notes=NoteBook(receipts.folder.parent / "notes"),
        contracts=dict(chain.deployment.addresses()),
        allow_private=allow_private,
    )
