"""`counterfoil node list-service`, `set-price`, `pause-service` and `resume-service`: what a node offers."""

import click

from counterfoil.chain.contracts import NodeRegistry
from counterfoil.chain.sender import events
from counterfoil.cli.operating import (
    AMOUNT,
    MAX_LABEL,
    MAX_TEXT,
    NODE_ID,
    Text,
    how_the_price_stands,
    known_node,
    known_service,
    operation,
    operator_of,
    prices_of_others,
)
from counterfoil.cli.options import Common, common, example
from counterfoil.cli.output import amount
from counterfoil.cli.signing import Operation, Plan, Signing, Step, hand, signing
from counterfoil.routing.lottery import category_id


@click.command(
    "list-service", epilog=example("counterfoil node list-service 1 --category mcp:web-search --price 900 --dry-run")
)
@click.argument("node_id", type=NODE_ID)
@click.option("--category", type=Text(MAX_LABEL), required=True, help="What is served, such as data:crypto-price.")
@click.option("--price", type=AMOUNT, required=True, help="Per call, in base units of the payment token.")
@click.option("--metadata-uri", type=Text(MAX_TEXT), default="", help="Where the service is described.")
@signing
@common
def list_service(common: Common, node_id: int, category: str, price: int, metadata_uri: str, how: Signing) -> None:
    """List a service of node NODE_ID: one per category, for ever."""
    run = operation(common, how)
    registry = NodeRegistry(run.chain)
    node = known_node(registry, node_id)
    step = Step(
        f"list {category} on node {node_id} at {amount(price)} a call",
        registry.list_service(node_id, category, price, metadata_uri),
    )
    guard = how_the_price_stands(price, prices_of_others(run.chain, "0x" + category_id(category).hex(), 0))
    sent = run.carry_out(Plan([step], [guard]), hand(how, operator_of(node_id, node)))
    if sent:
        service_id = events(step.write, sent[-1], "ServiceListed")[0]["service_id"]
        said = f"Service {service_id} is listed. {guard}"
        run.finish({"service_id": service_id}, sent, said, f"counterfoil service {service_id}")


@click.command("set-price", epilog=example("counterfoil node set-price 1 900 --dry-run"))
@click.argument("service_id", type=NODE_ID)
@click.argument("price", type=AMOUNT)
@signing
@common
def set_price(common: Common, service_id: int, price: int, how: Signing) -> None:
    """Change what a call of service SERVICE_ID costs, in base units of the payment token. Open sessions keep theirs."""
    run = operation(common, how)
    registry = NodeRegistry(run.chain)
    service, role = known_service(registry, service_id)
    document = {"service_id": service_id, "price": str(price)}
    then = f"counterfoil node status {service.node_id}"
    guard = how_the_price_stands(price, prices_of_others(run.chain, service.category_id, service_id))
    if service.price == price:
        said = f"Service {service_id} costs {amount(price)} already: nothing was sent. {guard}"
        run.finish(document, [], said, then)
        return
    step = Step(
        f"change the price of service {service_id} from {amount(service.price)} to {amount(price)} a call",
        registry.set_price(service_id, price),
    )
    sent = run.carry_out(Plan([step], [guard]), hand(how, role))
    if sent:
        said = f"Service {service_id} costs {amount(price)} a call in sessions opened from now on. {guard}"
        run.finish(document, sent, said, then)


@click.command("pause-service", epilog=example("counterfoil node pause-service 1 --dry-run"))
@click.argument("service_id", type=NODE_ID)
@signing
@common
def pause_service(common: Common, service_id: int, how: Signing) -> None:
    """Take no new sessions for service SERVICE_ID; open ones go on."""
    said = f"Service {service_id} takes no new sessions; open ones go on."
    _switch(operation(common, how), service_id, active=False, said=said)


@click.command("resume-service", epilog=example("counterfoil node resume-service 1 --dry-run"))
@click.argument("service_id", type=NODE_ID)
@signing
@common
def resume_service(common: Common, service_id: int, how: Signing) -> None:
    """Take new sessions for service SERVICE_ID again."""
    said = f"Service {service_id} takes new sessions again."
    _switch(operation(common, how), service_id, active=True, said=said)


def _switch(run: Operation, service_id: int, *, active: bool, said: str) -> None:
    registry = NodeRegistry(run.chain)
    service, role = known_service(registry, service_id)
    document = {"service_id": service_id, "active": active}
    then = f"counterfoil node status {service.node_id}" if active else f"counterfoil node resume-service {service_id}"
    if service.active == active:
        state = "active" if active else "paused"
        run.finish(document, [], f"Service {service_id} is {state} already: nothing was sent.", then)
        return
    verb = "resume" if active else "pause"
    step = Step(f"{verb} service {service_id} of node {service.node_id}", registry.set_active(service_id, active))
    sent = run.carry_out(Plan([step]), hand(run.how, role))
    if sent:
        run.finish(document, sent, said, then)
