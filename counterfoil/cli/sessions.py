"""`counterfoil sessions` and `counterfoil session`."""

import click

from counterfoil.cli.options import Address, Common, after, at, common, limit
from counterfoil.cli.output import amount, print_as_of, print_json, print_pairs, print_table, short
from counterfoil.documents import SESSION_STATUS, session_answer, sessions_answer
from counterfoil.reading import open_index
from counterfoil.receipts import policy_name
from counterfoil.routing.lottery import NO_CAP
from indexer import query
from indexer.errors import QuestionError
from indexer.query import At


@click.command()
@click.option("--client", type=Address(), help="Only those of this client.")
@click.option("--node", "node_id", type=click.IntRange(1), help="Only those of this node.")
@click.option("--service", "service_id", type=click.IntRange(1), help="Only those of this service.")
@click.option("--status", type=click.Choice(SESSION_STATUS[1:]), help="Only those in this status.")
@at
@after
@limit
@common
def sessions(
    common: Common, client: str | None, node_id: int | None, service_id: int | None, status: str | None, at: At,
    after: int, limit: int,
) -> None:  # fmt: skip
    """List sessions, by number."""
    code = None if status is None else SESSION_STATUS.index(status)
    with open_index(common.settings) as store:
        answer = query.sessions(
            store, client=client, node_id=node_id, service_id=service_id, status=code, after=after, limit=limit, at=at
        )
    page = answer.value
    if common.json:
        print_json(sessions_answer(answer))
        return
    print_as_of(answer.as_of)
    print_table(
        (">no", "session", "client", ">service", ">node", ">attempt", ">deposit", ">paid", ">calls", "status"),
        (
            (
                row.number,
                short(row.session_id),
                short(row.client),
                row.service_id,
                row.node_id,
                row.attempt,
                amount(row.deposit),
                amount(row.paid),
                row.calls,
                SESSION_STATUS[row.status],
            )
            for row in page.items
        ),
    )
    if page.next is not None:
        click.echo(f"more with --after {page.next}")


@click.command()
@click.argument("session")
@at
@common
def session(common: Common, session: str, at: At) -> None:
    """Show one session, named by its number, its id, or an unambiguous start of it."""
    which = int(session) if session.isdecimal() and len(session) < 19 else session
    with open_index(common.settings) as store:
        answer = query.session(store, which, at)
    row = answer.value
    if row is None:
        raise QuestionError(
            f"There is no session {session[:80]} as of block {answer.as_of.block}: see `counterfoil sessions`, "
            "or bring the index up to date with `counterfoil index run`."
        )
    if common.json:
        print_json(session_answer(answer.as_of, row))
        return
    print_as_of(answer.as_of)
    cap = "none" if row.price_cap == NO_CAP else amount(row.price_cap)
    print_pairs(
        [
            ("session", f"{row.session_id} (number {row.number})"),
            ("status", SESSION_STATUS[row.status]),
            ("client", row.client),
            ("service", f"{row.service_id} on node {row.node_id} of {row.operator}"),
            ("policy", f"{policy_name(row.policy)}, draw {row.nonce}, attempt {row.attempt}, cap {cap}"),
            ("price", f"{amount(row.price)} a call, max_price {amount(row.max_price)}"),
            ("deposit", amount(row.deposit)),
            ("paid", f"{amount(row.paid)} for {row.calls} calls, {amount(row.refunded)} refunded"),
            ("voucher signer", row.signer),
            ("opened in", f"block {row.opened_block}, snapshot of block {row.snapshot_block}"),
            ("receipt", row.decision),
        ]
    )
