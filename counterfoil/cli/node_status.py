"""`counterfoil node status`: what an operator asks of its own node, and what it could do better."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from counterfoil.cli.node_advice import ServiceStanding, Standing, improvements, why_not_routed
from counterfoil.cli.node_standing import Seen, look
from counterfoil.cli.operating import NODE_ID, connected
from counterfoil.cli.options import Common, common, example
from counterfoil.cli.output import amount, moment, print_json, print_pairs, print_table, rating, say, short


@click.command(epilog=example("counterfoil node status 1"))
@click.argument("node_id", type=NODE_ID)
@click.option("--probe", is_flag=True, help="Also ask whether the endpoint answers /health.")
@click.option("--allow-private", is_flag=True, help="An endpoint in a private network is meant.")
@common
def status(common: Common, node_id: int, probe: bool, allow_private: bool) -> None:
    """Show where node NODE_ID stands, from the chain alone, and what to improve. No key is needed.

    Settled sessions and what they paid are from the index or API of the settings, where one answers.
    """
    seen = look(connected(common), common.settings, node_id, probe=probe, allow_private=allow_private)
    if common.json:
        print_json(_document(seen))
        return
    say(f"as of block {seen.block.number} ({short(seen.block.hash)}) of chain {seen.chain_id}")
    print_pairs(_pairs(seen))
    services = seen.standing.services
    if services:
        print_table((">service", "category", ">price", ">kept up to", "state"), map(_row, services))
    found = improvements(seen.standing)
    say("what to improve:" if found else "what to improve: nothing that the chain shows.")
    for improvement in found:
        say(f"- {improvement.sentence}")
        click.echo(f"  {improvement.command}")


def _pairs(seen: Seen) -> Iterator[tuple[str, object]]:
    node, standing = seen.node, seen.standing
    yield "node", standing.node_id
    yield "operator", node.operator
    yield "endpoint", node.endpoint
    yield "routed to", _routed(standing)
    yield "stake", f"{amount(standing.stake)}, the least is {amount(standing.min_stake)}"
    yield "unbonding", _unbonding(standing)
    yield "holds", f"{standing.holds} open disputes hold the withdrawal" if standing.holds else "none"
    yield "sessions", f"{standing.active_sessions} of {standing.max_concurrent} at a time"
    yield "settled", _settled(seen)
    yield "earnings", f"{amount(standing.credit)} to withdraw"
    counted = f"{rating(standing.rating_sum, standing.rating_count)}, {seen.unpaid_ratings} of them unpaid"
    yield "rating", counted if standing.rating_count else "unrated"
    yield "capabilities", ", ".join(seen.capabilities) or "none"


def _routed(standing: Standing) -> str:
    why = why_not_routed(standing)
    return "yes" if why is None else f"no: {why}"


def _unbonding(standing: Standing) -> str:
    if not standing.unbonding:
        return "nothing"
    when = "released" if standing.now >= standing.release_at else "to be released"
    return f"{amount(standing.unbonding)}, {when} on {moment(standing.release_at)}"


def _settled(seen: Seen) -> str:
    if seen.indexed is None:
        return f"unknown without an index: {seen.no_index or 'there are too many to count here'}"
    found = seen.indexed
    return f"{found.settled_sessions} sessions, which paid {amount(found.paid)} (index, block {found.block})"


def _row(service: ServiceStanding) -> tuple[object, ...]:
    highest = "any price" if service.highest_kept is None else amount(service.highest_kept)
    return service.service_id, service.category, amount(service.price), highest, _state(service)


def _state(service: ServiceStanding) -> str:
    if not service.active:
        return "paused"
    if not service.routable:
        return "stake too low"
    return "routable" if service.kept else "no traffic: over 120% of the average"


def _document(seen: Seen) -> dict[str, Any]:
    node, standing, indexed = seen.node, seen.standing, seen.indexed
    return {
        "as_of": {
            "chain_id": seen.chain_id,
            "block": seen.block.number,
            "hash": seen.block.hash,
            "timestamp": seen.block.timestamp,
        },
        "node_id": standing.node_id,
        "operator": node.operator,
        "endpoint": node.endpoint,
        "not_routed_because": why_not_routed(standing),
        "stake": str(standing.stake),
        "min_stake": str(standing.min_stake),
        "stake_per_slot": str(standing.stake_per_slot),
        "unbonding": str(standing.unbonding),
        "release_at": standing.release_at,
        "holds": standing.holds,
        "active_sessions": standing.active_sessions,
        "max_concurrent": str(standing.max_concurrent),
        "credit": str(standing.credit),
        "rating_sum": standing.rating_sum,
        "rating_count": standing.rating_count,
        "unpaid_count": seen.unpaid_ratings,
        "capabilities": list(seen.capabilities),
        "services": [_service_document(service) for service in standing.services],
        "index": None
        if indexed is None
        else {
            "block": indexed.block,
            "settled_sessions": indexed.settled_sessions,
            "paid": str(indexed.paid),
        },
        "improve": [asdict(improvement) for improvement in improvements(standing)],
    }


def _service_document(service: ServiceStanding) -> dict[str, Any]:
    return {
        "service_id": service.service_id,
        "category": service.category,
        "price": str(service.price),
        "active": service.active,
        "routable": service.routable,
        "kept": service.kept,
        "others": service.others,
        "highest_kept": None if service.highest_kept is None else str(service.highest_kept),
    }
