"""`counterfoil route`: what the lottery would choose, without opening anything."""

import click

from counterfoil import market
from counterfoil.cli.options import Address, Common, common
from counterfoil.cli.options import at as at_option
from counterfoil.cli.output import amount, print_as_of, print_json, print_table, say
from counterfoil.cli.receipt import candidate_rows
from counterfoil.decision import NOBODY, decide, next_draw
from counterfoil.documents import route_answer
from counterfoil.reading import open_index
from counterfoil.receipts.model import SAFE_INTEGER
from counterfoil.routing import reasons
from counterfoil.routing.lottery import NO_CAP
from indexer import query


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
        snapshot = market.snapshot(store, category, at)
        as_of = snapshot.as_of
        draw = next_draw(store, client, as_of.block) if nonce is None else nonce
        receipt = decide(snapshot, query.status(store).value.addresses, client, draw, cap)
    if common.json:
        print_json(route_answer(as_of, receipt))
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
