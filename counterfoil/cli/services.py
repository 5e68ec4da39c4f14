"""`counterfoil services` and `counterfoil service`: listings as of a block."""

import click

from counterfoil.cli.options import Common, after, at, common, limit
from counterfoil.cli.output import (
    amount,
    print_as_of,
    print_json,
    print_pairs,
    print_table,
    rating,
)
from counterfoil.documents import as_of_document, service_document
from counterfoil.reading import open_index
from indexer import query
from indexer.errors import QuestionError
from indexer.query import At
from indexer.views import ServiceView


@click.command()
@click.option("--category", help="Only those of this category.")
@click.option("--routable", is_flag=True, help="Only those that can be routed to.")
@at
@after
@limit
@common
def services(common: Common, category: str | None, routable: bool, at: At, after: int, limit: int) -> None:
    """List services, by id."""
    with open_index(common.settings) as store:
        answer = query.services(store, category=category, routable=routable, after=after, limit=limit, at=at)
    page = answer.value
    if common.json:
        rows = [service_document(view) for view in page.items]
        print_json({"as_of": as_of_document(answer.as_of), "services": rows, "next": page.next})
        return
    print_as_of(answer.as_of)
    print_table(
        (">service", "category", ">node", ">price", ">stake", "rating", ">sessions", "state"),
        (
            (
                view.service_id,
                view.category,
                view.node_id,
                amount(view.price),
                amount(view.stake),
                rating(view.rating_sum, view.rating_count),
                f"{view.active_sessions}/{view.max_concurrent}",
                state_of(view),
            )
            for view in page.items
        ),
    )
    if page.next is not None:
        click.echo(f"more with --after {page.next}")


@click.command()
@click.argument("service_id", type=click.IntRange(1))
@at
@common
def service(common: Common, service_id: int, at: At) -> None:
    """Show one service."""
    with open_index(common.settings) as store:
        answer = query.service(store, service_id, at)
    view = answer.value
    if view is None:
        raise QuestionError(
            f"There is no service {service_id} as of block {answer.as_of.block}: see `counterfoil services`."
        )
    if common.json:
        print_json({"as_of": as_of_document(answer.as_of), "service": service_document(view)})
        return
    print_as_of(answer.as_of)
    print_pairs(
        [
            ("service", view.service_id),
            ("category", view.category),
            ("price a call", amount(view.price)),
            ("state", state_of(view)),
            ("node", view.node_id),
            ("operator", view.operator),
            ("endpoint", view.endpoint),
            ("metadata", view.metadata_uri),
            ("stake", amount(view.stake)),
            ("sessions", f"{view.active_sessions} of {view.max_concurrent} at a time"),
            ("rating", rating(view.rating_sum, view.rating_count)),
        ]
    )


def state_of(view: ServiceView) -> str:
    """Whether a service can be routed to, and what stands against it."""
    if view.routable:
        return "routable"
    return "stake too low" if view.active else "inactive"
