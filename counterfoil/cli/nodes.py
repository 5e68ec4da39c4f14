"""`counterfoil nodes`: operators' nodes as of a block."""

import click

from counterfoil.cli.options import Address, Common, after, at, common, limit
from counterfoil.cli.output import amount, print_as_of, print_json, print_table, rating, short
from counterfoil.documents import nodes_answer
from counterfoil.reading import open_index
from indexer import query
from indexer.query import At


@click.command()
@click.option("--operator", type=Address(), help="Only those of this operator.")
@at
@after
@limit
@common
def nodes(common: Common, operator: str | None, at: At, after: int, limit: int) -> None:
    """List nodes, by id."""
    with open_index(common.settings) as store:
        answer = query.nodes(store, operator=operator, after=after, limit=limit, at=at)
    page = answer.value
    if common.json:
        print_json(nodes_answer(answer))
        return
    print_as_of(answer.as_of)
    print_table(
        (">node", "operator", ">stake", ">unbonding", ">sessions", "rating", "endpoint"),
        (
            (
                view.node_id,
                short(view.operator),
                amount(view.stake),
                amount(view.unbonding),
                f"{view.active_sessions}/{view.max_concurrent}",
                rating(view.rating_sum, view.rating_count),
                view.endpoint,
            )
            for view in page.items
        ),
    )
    if page.next is not None:
        click.echo(f"more with --after {page.next}")
