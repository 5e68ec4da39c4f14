"""`counterfoil services` and `counterfoil service`: listings as of a block."""

from itertools import islice

import click

from counterfoil.cli.options import Common, after, at, common, limit
from counterfoil.cli.output import (
    amount,
    print_as_of,
    print_json,
    print_pairs,
    print_table,
    rating,
    say,
    short,
)
from counterfoil.directory import Directory, Experience, LiveListings, StoredListings
from counterfoil.directory.listings import Placed
from counterfoil.documents import MAX_GROUPS, best_answer, experience_answer, service_answer, services_answer
from counterfoil.reading import open_index
from counterfoil.routing.experience import NOTES_KEPT, rounded, sentence
from indexer.errors import QuestionError
from indexer.query import Answer, At, Page
from indexer.views import ServiceView


@click.command()
@click.option("--category", help="Only those of this category.")
@click.option("--routable", is_flag=True, help="Only those that can be routed to.")
@click.option("--best", "task", metavar="TASK", help="Rank all of them for a task, by what other agents found.")
@click.option("--need", help="Rank all of them for a kind of job, such as data:crypto; alone or with --best.")
@at
@after
@limit
@common
def services(
    common: Common,
    category: str | None,
    routable: bool,
    task: str | None,
    need: str | None,
    at: At,
    after: int,
    limit: int,
) -> None:
    """List services by id, or with --best and --need by what other agents found.

    Example: counterfoil services --best "bitcoin price" --need data:crypto
    """
    with open_index(common.settings) as store:
        if task is not None or need is not None:
            if category is not None or not (task or need):
                raise QuestionError("A ranking is of all services, for a task or a need: name one, and no --category.")
            listings = LiveListings(Directory(store), at)
            ranking = listings.best(task or "", need or "", routable=routable, after=after, limit=limit)
            _print_ranking(common, ranking, after)
            return
        answer = StoredListings(store, at).page(category, routable=routable, after=after, limit=limit)
    page = answer.value
    if common.json:
        print_json(services_answer(answer))
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
            for view, _ in page.items
        ),
    )
    if page.next is not None:
        click.echo(f"more with --after {page.next}")


def _print_ranking(common: Common, answer: Answer[Page[Placed]], after: int) -> None:
    page = answer.value
    places = list(enumerate(page.items, after + 1))
    if common.json:
        print_json(best_answer(answer, after))
        return
    print_as_of(answer.as_of)
    print_table((">place", ">service", ">price", ">close", "trusted", "what was found"), map(_ranking_row, places))
    if page.next is not None:
        click.echo(f"more with --after {page.next}")


def _ranking_row(placed: tuple[int, Placed]) -> tuple[object, ...]:
    place, (ranked, _) = placed
    match, view = ranked.match, ranked.view
    found = "nobody has tried it for this" if match.label is None else sentence(match.label, match.summary)
    close = f"{rounded(match.closeness * 100)}%" if match.label is not None else None
    return place, view.service_id, amount(view.price), close, "yes" if match.is_trusted else None, found


@click.command()
@click.argument("service_id", type=click.IntRange(1))
@click.option("--experience", is_flag=True, help="What other agents found of it, by need and by task.")
@at
@common
def service(common: Common, service_id: int, experience: bool, at: At) -> None:
    """Show one service.

    Example: counterfoil service 1 --experience
    """
    with open_index(common.settings) as store:
        answer = StoredListings(store, at).one(service_id)
    if answer.value is None:
        raise QuestionError(
            f"There is no service {service_id} as of block {answer.as_of.block}: see `counterfoil services`."
        )
    view, known = answer.value
    if common.json:
        shown = experience_answer if experience else service_answer
        print_json(shown(answer.as_of, answer.value))
        return
    print_as_of(answer.as_of)
    if experience:
        _print_experience(known)
        return
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


def _print_experience(known: Experience) -> None:
    if not known.needs:
        say("Nobody has said anything of this service yet.")
        return
    groups = [*islice(known.needs.items(), MAX_GROUPS), *islice(known.tasks.items(), MAX_GROUPS)]
    print_table(("tool", "what was found"), [(tool, sentence(label, of)) for (tool, label), of in groups])
    notes = {note for of in known.needs.values() for note in of.notes}
    newest = sorted(notes, reverse=True)[:NOTES_KEPT]
    if not newest:
        return
    print_table(("session", "tool", "note"), [(short(session), tool, text) for _, session, tool, text in newest])


def state_of(view: ServiceView) -> str:
    """Whether a service can be routed to, and what stands against it."""
    if view.routable:
        return "routable"
    return "stake too low" if view.active else "inactive"
