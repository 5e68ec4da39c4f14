"""`counterfoil node list-service`, `set-price`, `pause-service` and `resume-service`: what a node offers."""

import click

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import NodeRegistry
from counterfoil.chain.sender import events
from counterfoil.cli.operating import (
    AMOUNT,
    NODE_ID,
    Text,
    connected,
    how_the_price_stands,
    known_node,
    known_service,
    operator_of,
    prices_of_others,
)
from counterfoil.cli.options import Common, common, example
from counterfoil.cli.output import amount
from counterfoil.cli.signing import Plan, Signing, Step, carry_out, finish, hand, signing, transactions
from counterfoil.routing.lottery import category_id

MAX_LABEL = 64
MAX_TEXT = 256


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
    chain = connected(common)
    registry = NodeRegistry(chain)
    node = known_node(registry, node_id)
    step = Step(
        f"list {category} on node {node_id} at {amount(price)} a call",
        registry.list_service(node_id, category, price, metadata_uri),
    )
    guard = how_the_price_stands(price, prices_of_others(chain, "0x" + category_id(category).hex(), 0))
    mined = carry_out(chain, Plan([step], [guard]), hand(how, operator_of(node_id, node)), how, common.json)
    if not mined:
        return
    service_id = events(step.write, mined[-1], "ServiceListed")[0]["service_id"]
    finish(
        {"service_id": service_id, "transactions": transactions(mined)},
        f"Service {service_id} is listed. See it with: counterfoil service {service_id}",
        common.json,
    )


@click.command("set-price", epilog=example("counterfoil node set-price 1 900 --dry-run"))
@click.argument("service_id", type=NODE_ID)
@click.argument("price", type=AMOUNT)
@signing
@common
def set_price(common: Common, service_id: int, price: int, how: Signing) -> None:
    """Change what a call of service SERVICE_ID costs, in base units of the payment token. Open sessions keep theirs."""
    chain = connected(common)
    registry = NodeRegistry(chain)
    service, role = known_service(registry, service_id)
    document = {"service_id": service_id, "price": str(price)}
    guard = how_the_price_stands(price, prices_of_others(chain, service.category_id, service_id))
    if service.price == price:
        said = f"Service {service_id} costs {amount(price)} already: nothing was sent. {guard}"
        finish(document | {"transactions": []}, said, common.json)
        return
    step = Step(
        f"change the price of service {service_id} from {amount(service.price)} to {amount(price)} a call",
        registry.set_price(service_id, price),
    )
    mined = carry_out(chain, Plan([step], [guard]), hand(how, role), how, common.json)
    if mined:
        said = f"Service {service_id} costs {amount(price)} a call in sessions opened from now on. {guard}"
        finish(document | {"transactions": transactions(mined)}, said, common.json)


@click.command("pause-service", epilog=example("counterfoil node pause-service 1 --dry-run"))
@click.argument("service_id", type=NODE_ID)
@signing
@common
def pause_service(common: Common, service_id: int, how: Signing) -> None:
    """Take no new sessions for service SERVICE_ID; open ones go on."""
    said = (
        f"Service {service_id} takes no new sessions; open ones go on. "
        f"Take it up again with: counterfoil node resume-service {service_id}"
    )
    _switch(connected(common), common, service_id, how, active=False, said=said)


@click.command("resume-service", epilog=example("counterfoil node resume-service 1 --dry-run"))
@click.argument("service_id", type=NODE_ID)
@signing
@common
def resume_service(common: Common, service_id: int, how: Signing) -> None:
    """Take new sessions for service SERVICE_ID again."""
    said = f"Service {service_id} takes new sessions again. See it with: counterfoil service {service_id}"
    _switch(connected(common), common, service_id, how, active=True, said=said)


def _switch(chain: Chain, common: Common, service_id: int, how: Signing, *, active: bool, said: str) -> None:
    registry = NodeRegistry(chain)
    service, role = known_service(registry, service_id)
    document = {"service_id": service_id, "active": active}
    if service.active == active:
        state = "active" if active else "paused"
        finish(
            document | {"transactions": []}, f"Service {service_id} is {state} already: nothing was sent.", common.json
        )
        return
    verb = "resume" if active else "pause"
    step = Step(f"{verb} service {service_id} of node {service.node_id}", registry.set_active(service_id, active))
    mined = carry_out(chain, Plan([step]), hand(how, role), how, common.json)
    if mined:
        finish(document | {"transactions": transactions(mined)}, said, common.json)
