"""`counterfoil route`: what the lottery would choose, without opening anything."""

import click

from counterfoil import market
from counterfoil.cli.options import Address, Common, common
from counterfoil.cli.options import at as at_option
from counterfoil.cli.output import amount, print_as_of, print_json, print_table, say
from counterfoil.cli.receipt import candidate_rows
from counterfoil.documents import as_of_document
from counterfoil.reading import open_index
from counterfoil.receipts import Receipt, ReceiptError, Request, build, digest
from counterfoil.receipts.canonical import document
from counterfoil.receipts.model import SAFE_INTEGER
from counterfoil.routing import reasons
from counterfoil.routing.lottery import NO_CAP
from indexer import query
from indexer.query import Store

NOBODY = "0x" + "0" * 40
_PAGE = 1000


@click.command()
@click.argument("category")
@click.option("--client", type=Address(), default=NOBODY, help="Who draws: the address is part of the seed.")
@click.option("--cap", type=click.IntRange(0, NO_CAP - 1), help="Soft cap on the price a call, in base units.")
@click.option(
    "--nonce", type=click.IntRange(0, SAFE_INTEGER - 1), help="The client's draw number; by default its next one."
)
@at_option
@common
def route(common: Common, category: str, client: str, cap: int | None, nonce: int | None, at: int | str | None) -> None:
    """Rank the services of CATEGORY for a client's next draw, with every reason. Nothing is opened or written.

    Without --client the weights and chances are everybody's, and the places are of a draw that nobody makes.
    """
    with open_index(common.settings) as store:
        as_of = query.as_of(store, at)
        draw = next_draw(store, client, as_of.block) if nonce is None else nonce
        try:
            receipt = decide(store, category, client, draw, cap, as_of.block)
        except ReceiptError as error:
            # The words of a receipt's field, told of the argument that it came from.
            raise ReceiptError(str(error).removeprefix("request.")) from error
    if common.json:
        shown = {"as_of": as_of_document(as_of), "digest": digest(receipt), "decision": document(receipt)}
        print_json(shown)
        return
    print_as_of(as_of)
    print_table(
        (">place", ">service", ">price", ">stake", ">reputation", ">headroom", ">weight", ">chance", "dropped"),
        candidate_rows(receipt),
    )
    cap_words = "no cap" if cap is None else f"cap {amount(cap)}"
    if receipt.ranking.relaxed and cap is not None:
        say(reasons.relaxed(cap, len(receipt.candidates)))
    say(f"draw {draw} of {client}, {cap_words}: {receipt.reason}")


def decide(store: Store, category: str, client: str, nonce: int, cap: int | None, block: int) -> Receipt:
    """The receipt of a draw over the index as of a block. Raises ReceiptError where nothing can be chosen."""
    snapshot = market.snapshot(store, category, block)
    return build(
        chain_id=snapshot.chain_id,
        contracts=query.status(store).value.addresses,
        snapshot_block=snapshot.block,
        snapshot_hash=snapshot.block_hash,
        request=Request(category=category, client=client, nonce=nonce, price_cap=cap),
        candidates=snapshot.candidates,
    )


def next_draw(store: Store, client: str, block: int) -> int:
    """The number of a client's next draw as of a block: one more than the greatest of its sessions."""
    greatest, after = -1, 0
    while True:
        page = query.sessions(store, client=client, after=after, limit=_PAGE, at=block).value
        greatest = max([greatest, *(row.nonce for row in page.items)])
        if page.next is None:
            return greatest + 1
        after = page.next
