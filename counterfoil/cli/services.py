"""`counterfoil services` and `counterfoil service`: listings as of a block."""

from fractions import Fraction

import click

from counterfoil import answers
from counterfoil.asking import Rows
from counterfoil.cli.options import Common, after, answering, asking, at, example, limit
from counterfoil.cli.output import (
    amount,
    print_as_of,
    print_json,
    print_next,
    print_pairs,
    print_table,
    rating,
    say,
    short,
)
from counterfoil.routing.experience import NOTES_KEPT, rounded
from indexer.errors import QuestionError
from indexer.query import At


@click.command(
    epilog=example(
        "counterfoil services --category data:crypto-price --routable",
        'counterfoil services --best "bitcoin price" --need data:crypto',
        "counterfoil services --api http://127.0.0.1:8700",
    )
)
@click.option("--category", help="Only those of this category.")
@click.option("--routable", is_flag=True, help="Only those that can be routed to.")
@click.option("--best", "task", metavar="TASK", help="Rank all of them for a task, by what other agents found.")
@click.option("--need", help="Rank all of them for a kind of job, such as data:crypto; alone or with --best.")
@at
@after
@limit
@asking
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
    """List services by id, or with --best and --need by what other agents found."""
    rows = Rows(after, limit, at)
    if task is None and need is None:
        _list(common, category, routable, rows)
        return
    if category is not None or not (task or need):
        raise QuestionError("A ranking is of all services, for a task or a need: name one, and no --category.")
    _rank(common, task or "", need or "", routable, rows)


def _list(common: Common, category: str | None, routable: bool, rows: Rows) -> None:
    with answering(common) as ask:
        answer = ask.services(category, routable=routable, rows=rows)
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    print_table(
        (">service", "category", ">node", ">price", ">stake", "rating", ">sessions", "state"),
        map(_row, answer["services"]),
    )
    print_next(answer["next"])


def _row(service: answers.Service) -> tuple[object, ...]:
    return (
        service["service_id"],
        service["category"],
        service["node_id"],
        amount(service["price"]),
        amount(service["stake"]),
        rating(service["rating_sum"], service["rating_count"]),
        f"{service['active_sessions']}/{service['max_concurrent']}",
        state_of(service),
    )


def _rank(common: Common, task: str, need: str, routable: bool, rows: Rows) -> None:
    with answering(common) as ask:
        answer = ask.best(task, need, routable=routable, rows=rows)
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    columns = (">place", ">service", ">price", ">close", "trusted", "what was found")
    print_table(columns, map(_ranking_row, answer["best"]))
    print_next(answer["next"])


def _ranking_row(place: answers.Place) -> tuple[object, ...]:
    match, service = place["match"], place["service"]
    start = place["place"], service["service_id"], amount(service["price"])
    if match is None:
        return *start, None, None, "nobody has tried it for this"
    close = f"{rounded(Fraction(match['closeness']) * 100)}%"
    return *start, close, "yes" if match["trusted"] else None, match["sentence"]


@click.command(epilog=example("counterfoil service 1", "counterfoil service 1 --experience"))
@click.argument("service_id", type=click.IntRange(1))
@click.option("--experience", is_flag=True, help="What other agents found of it, by need and by task.")
@at
@asking
def service(common: Common, service_id: int, experience: bool, at: At) -> None:
    """Show one service."""
    with answering(common) as ask:
        if experience:
            _show_experience(common, ask.experience(service_id, at))
        else:
            _show(common, ask.service(service_id, at))


def _show(common: Common, answer: answers.ServiceAnswer) -> None:
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    service = answer["service"]
    print_pairs(
        [
            ("service", service["service_id"]),
            ("category", service["category"]),
            ("price a call", amount(service["price"])),
            ("state", state_of(service)),
            ("node", service["node_id"]),
            ("operator", service["operator"]),
            ("endpoint", service["endpoint"]),
            ("metadata", service["metadata_uri"]),
            ("stake", amount(service["stake"])),
            ("sessions", f"{service['active_sessions']} of {service['max_concurrent']} at a time"),
            ("rating", rating(service["rating_sum"], service["rating_count"])),
        ]
    )


def _show_experience(common: Common, answer: answers.ExperienceAnswer) -> None:
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    known = answer["experience"]
    if not known["needs"]:
        say("Nobody has said anything of this service yet.")
        return
    groups = [*known["needs"], *known["tasks"]]
    print_table(("tool", "what was found"), [(group["tool"], group["sentence"]) for group in groups])
    newest = _newest_notes(known["needs"])
    if newest:
        print_table(("session", "tool", "note"), [(short(session), tool, text) for _, session, tool, text in newest])


def _newest_notes(groups: list[answers.Group]) -> list[tuple[int, str, str, str]]:
    notes = {
        (note["timestamp"], note["session_id"], note["tool"], note["note"])
        for group in groups
        for note in group["notes"]
    }
    return sorted(notes, reverse=True)[:NOTES_KEPT]


def state_of(service: answers.Service) -> str:
    """Whether a service can be routed to, and what stands against it."""
    if service["routable"]:
        return "routable"
    return "stake too low" if service["active"] else "inactive"
