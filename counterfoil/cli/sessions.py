"""`counterfoil sessions` and `counterfoil session`."""

import click

from counterfoil import answers
from counterfoil.asking import Rows, SessionsOf
from counterfoil.cli.options import Address, Common, after, answering, asking, at, example, limit
from counterfoil.cli.output import amount, print_as_of, print_json, print_next, print_pairs, print_table, short
from counterfoil.documents import SESSION_STATUS
from indexer.query import At


@click.command(epilog=example("counterfoil sessions --status open --limit 20"))
@click.option("--client", type=Address(), help="Only those of this client.")
@click.option("--node", "node_id", type=click.IntRange(1), help="Only those of this node.")
@click.option("--service", "service_id", type=click.IntRange(1), help="Only those of this service.")
@click.option("--status", type=click.Choice(SESSION_STATUS[1:]), help="Only those in this status.")
@at
@after
@limit
@asking
def sessions(
    common: Common, client: str | None, node_id: int | None, service_id: int | None, status: str | None, at: At,
    after: int, limit: int,
) -> None:  # fmt: skip
    """List sessions, by number."""
    with answering(common) as ask:
        answer = ask.sessions(SessionsOf(client, node_id, service_id, status), Rows(after, limit, at))
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    print_table(
        (">no", "session", "client", ">service", ">node", ">attempt", ">deposit", ">paid", ">calls", "status"),
        map(_row, answer["sessions"]),
    )
    print_next(answer["next"])


def _row(session: answers.Session) -> tuple[object, ...]:
    return (
        session["number"],
        short(session["session_id"]),
        short(session["client"]),
        session["service_id"],
        session["node_id"],
        session["attempt"],
        amount(session["deposit"]),
        amount(session["paid"]),
        session["calls"],
        session["status"],
    )


@click.command(epilog=example("counterfoil session 1"))
@click.argument("session")
@at
@asking
def session(common: Common, session: str, at: At) -> None:
    """Show one session, named by its number, its id, or an unambiguous start of it."""
    with answering(common) as ask:
        answer = ask.session(session, at)
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    print_pairs(_pairs(answer["session"]))


def _pairs(session: answers.Session) -> list[tuple[str, object]]:
    cap = "none" if session["price_cap"] is None else amount(session["price_cap"])
    draw = f"draw {session['nonce']}, attempt {session['attempt']}, cap {cap}"
    refunded = amount(session["refunded"])
    return [
        ("session", f"{session['session_id']} (number {session['number']})"),
        ("status", session["status"]),
        ("client", session["client"]),
        ("service", f"{session['service_id']} on node {session['node_id']} of {session['operator']}"),
        ("policy", f"{session['policy']}, {draw}"),
        ("price", f"{amount(session['price'])} a call, max_price {amount(session['max_price'])}"),
        ("deposit", amount(session["deposit"])),
        ("paid", f"{amount(session['paid'])} for {session['calls']} calls, {refunded} refunded"),
        ("voucher signer", session["signer"]),
        ("opened in", f"block {session['opened_block']}, snapshot of block {session['snapshot_block']}"),
        ("receipt", session["decision"]),
    ]
