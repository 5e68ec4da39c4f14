"""Opening what an audit reads from: the chain, the index, the folder of receipts."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from counterfoil.audit.index import IndexSource
from counterfoil.audit.model import By
from counterfoil.audit.session import Auditor
from counterfoil.audit.state import StateSource
from counterfoil.chain.connection import connect
from counterfoil.reading import reading
from counterfoil.receipt_store import ReceiptStore
from indexer.errors import StoreError, UserError
from indexer.query import Store, open_store
from indexer.settings import Settings
from indexer.store.reader import read_meta


@contextmanager
def open_auditor(settings: Settings, by: By = "both") -> Iterator[Auditor]:
    """Open an auditor. With "both" an index that cannot be opened is told of in the audit; all else is raised.

    By "state" alone an index, where there is one, only resolves numbers and starts of ids.

    Raises UserError: the deployment, the RPC or (by "index" alone) the index is missing or of another chain.
    """
    receipts = ReceiptStore(settings.home / "receipts")
    with ExitStack() as stack:
        if by == "index":
            store = _open(stack, settings)
            yield auditor_by_index(store, receipts)
            return
        chain = connect(settings)
        stack.callback(chain.close)
        index, problem = None, None
        try:
            store = _open(stack, settings)
            _check_same(store, chain.chain_id, chain.deployment.addresses())
            index = IndexSource(store)
        except UserError as error:
            problem = str(error)
        both = by == "both"
        yield Auditor(
            chain_id=chain.chain_id,
            addresses=chain.deployment.addresses(),
            receipts=receipts,
            state=StateSource(chain),
            index=index if both else None,
            index_problem=problem if both else None,
            names=None if both else index,
        )


def _open(stack: ExitStack, settings: Settings) -> Store:
    with reading():
        return stack.enter_context(open_store(settings.database_url()))


def auditor_by_index(store: Store, receipts: ReceiptStore) -> Auditor:
    """An auditor that asks an opened index alone. Raises StoreError where it cannot be read."""
    chain_id, addresses = _identity(store)
    return Auditor(
        chain_id=chain_id,
        addresses=addresses,
        receipts=receipts,
        index=IndexSource(store),
    )


def _identity(store: Store) -> tuple[int, dict[str, str]]:
    """The chain and the contracts that an index is of, read without any row that may be damaged."""
    with reading(), store.read() as connection:
        meta = read_meta(connection)
        prefix = "address."
        addresses = {name.removeprefix(prefix): value for name, value in meta.items() if name.startswith(prefix)}
        return int(meta.get("chain_id", 0)), addresses


def _check_same(store: Store, chain_id: int, addresses: dict[str, str]) -> None:
    if _identity(store) != (chain_id, addresses):
        raise StoreError(
            f"The index at {store.label} is of another deployment: name the right one with --database or --deployment."
        )
