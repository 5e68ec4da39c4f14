"""`counterfoil nodes` and `counterfoil node`: operators' nodes as of a block."""

import click

from counterfoil import answers
from counterfoil.asking import Rows
from counterfoil.cli.lazy import LazyGroup
from counterfoil.cli.options import Address, Common, after, answering, asking, at, example, limit
from counterfoil.cli.output import amount, print_as_of, print_json, print_next, print_pairs, print_table, rating, short
from indexer.query import At


@click.command(epilog=example("counterfoil nodes --limit 20"))
@click.option("--operator", type=Address(), help="Only those of this operator.")
@at
@after
@limit
@asking
def nodes(common: Common, operator: str | None, at: At, after: int, limit: int) -> None:
    """List nodes, by id."""
    with answering(common) as ask:
        answer = ask.nodes(operator, Rows(after, limit, at))
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    columns = (">node", "operator", ">stake", ">unbonding", ">sessions", "rating", "endpoint")
    print_table(columns, map(_row, answer["nodes"]))
    print_next(answer["next"])


def _row(node: answers.Node) -> tuple[object, ...]:
    return (
        node["node_id"],
        short(node["operator"]),
        amount(node["stake"]),
        amount(node["unbonding"]),
        f"{node['active_sessions']}/{node['max_concurrent']}",
        rating(node["rating_sum"], node["rating_count"]),
        node["endpoint"],
    )


node = LazyGroup(
    "node",
    {
        "capability": "counterfoil.cli.node:capability",
        "list-service": "counterfoil.cli.node_services:list_service",
        "pause-service": "counterfoil.cli.node_services:pause_service",
        "register": "counterfoil.cli.node:register",
        "resume-service": "counterfoil.cli.node_services:resume_service",
        "serve": "counterfoil.cli.node_serve:serve",
        "set-endpoint": "counterfoil.cli.node:set_endpoint",
        "set-price": "counterfoil.cli.node_services:set_price",
        "settle": "counterfoil.cli.node_settle:settle",
        "show": "counterfoil.cli.nodes:show",
        "stake": "counterfoil.cli.node_stake:stake",
        "status": "counterfoil.cli.node_status:status",
        "unstake": "counterfoil.cli.node_stake:unstake",
        "withdraw": "counterfoil.cli.node_stake:withdraw",
    },
    help="Show a node, and do what its operator does: register, stake, list services, serve, settle, withdraw.",
)


@click.command(epilog=example("counterfoil node show 1"))
@click.argument("node_id", type=click.IntRange(1))
@at
@asking
def show(common: Common, node_id: int, at: At) -> None:
    """Show one node."""
    with answering(common) as ask:
        answer = ask.node(node_id, at)
    if common.json:
        print_json(answer)
        return
    print_as_of(answer)
    print_pairs(_pairs(answer["node"]))


def _pairs(node: answers.Node) -> list[tuple[str, object]]:
    release = f", released at {node['release_at']}" if node["release_at"] else ""
    return [
        ("node", node["node_id"]),
        ("operator", node["operator"]),
        ("endpoint", node["endpoint"]),
        ("stake", amount(node["stake"])),
        ("unbonding", f"{amount(node['unbonding'])}{release}"),
        ("sessions", f"{node['active_sessions']} of {node['max_concurrent']} at a time"),
        ("rating", f"{rating(node['rating_sum'], node['rating_count'])}, {node['unpaid_count']} of them unpaid"),
        ("capabilities", ", ".join(node["capabilities"]) or "none"),
    ]
