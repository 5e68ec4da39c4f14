"""What the lottery would choose for a client's next draw: a snapshot becomes a receipt, and nothing is written."""

from collections.abc import Mapping

from counterfoil.market import LiveMarket, Snapshot, snapshot
from counterfoil.receipts import Receipt, ReceiptError, Request, build
from indexer import query
from indexer.query import AsOf, At, Store

NOBODY = "0x" + "0" * 40
"""The client of a draw that nobody makes: its weights and chances are everybody's."""

_PAGE = 1000


def decide(snapshot: Snapshot, contracts: Mapping[str, str], client: str, nonce: int, cap: int | None) -> Receipt:
    """The receipt of draw `nonce` of a client. Raises ReceiptError where nothing can be chosen."""
    try:
        return build(
            chain_id=snapshot.as_of.chain_id,
            contracts=contracts,
            snapshot_block=snapshot.as_of.block,
            snapshot_hash=snapshot.as_of.hash,
            request=Request(category=snapshot.category, client=client, nonce=nonce, price_cap=cap),
            candidates=snapshot.candidates,
        )
    except ReceiptError as error:
        # The words of a receipt's field, told of the argument that it came from.
        raise ReceiptError(str(error).removeprefix("request.")) from error


def decide_next(
    market: LiveMarket, category: str, at: At, client: str, nonce: int | None, cap: int | None
) -> tuple[AsOf, Receipt]:
    """The block and the receipt of a client's draw, by default its next one: as of the newest block from memory.

    Raises what `decide` and a market's `snapshot` raise.
    """
    found = market.snapshot(category) if at is None else snapshot(market.store, category, at)
    draw = next_draw(market.store, client, found.as_of.block) if nonce is None else nonce
    return found.as_of, decide(found, market.head().addresses, client.lower(), draw, cap)


def next_draw(store: Store, client: str, block: int) -> int:
    """The number of a client's next draw as of a block: one more than the greatest of its sessions."""
    greatest, after = -1, 0
    while True:
        page = query.sessions(store, client=client, after=after, limit=_PAGE, at=block).value
        greatest = max([greatest, *(row.nonce for row in page.items)])
        if page.next is None:
            return greatest + 1
        after = page.next
