"""`counterfoil route`: what the lottery would choose, without opening anything."""

import click

from counterfoil.asking import Draw
from counterfoil.cli.options import Address, Common, answering, asking, example
from counterfoil.cli.options import at as at_option
from counterfoil.cli.output import amount, print_as_of, print_json, say
from counterfoil.cli.receipt import print_candidates
from counterfoil.decision import NOBODY
from counterfoil.receipts import from_document
from counterfoil.receipts.model import SAFE_INTEGER
from counterfoil.routing import reasons
from counterfoil.routing.lottery import NO_CAP


@click.command(
    epilog=example(
        "counterfoil route data:crypto-price",
        "counterfoil route data:crypto-price --client 0x0000000000000000000000000000000000000001",
    )
)
@click.argument("category")
@click.option("--client", type=Address(), default=NOBODY, help="Who draws: the address is part of the seed.")
@click.option("--cap", type=click.IntRange(0, NO_CAP - 1), help="Soft cap on the price a call, in base units.")
@click.option(
    "--nonce", type=click.IntRange(0, SAFE_INTEGER - 1), help="The client's draw number; by default its next one."
)
@at_option
@asking
def route(common: Common, category: str, client: str, cap: int | None, nonce: int | None, at: int | str | None) -> None:
    """Rank the services of CATEGORY for a client's next draw, with every reason. Nothing is opened or written.

    Without --client the weights and chances are everybody's, and the places are of a draw that nobody makes.
    """
    with answering(common) as ask:
        answer = ask.route(category, Draw(client, cap, nonce), at)
    if common.json:
        print_json(answer)
        return
    receipt = from_document(answer["decision"])
    print_as_of(answer)
    print_candidates(receipt)
    cap_words = "no cap" if cap is None else f"cap {amount(cap)}"
    if receipt.ranking.relaxed and cap is not None:
        say(reasons.relaxed(cap, len(receipt.candidates)))
    say(f"draw {receipt.request.nonce} of {client}, {cap_words}: {receipt.reason}")
