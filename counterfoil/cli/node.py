"""`counterfoil node register`, `set-endpoint` and `capability`: what a node is."""

import click

from counterfoil.chain.contracts import NodeRegistry
from counterfoil.chain.sender import events
from counterfoil.cli.operating import (
    AMOUNT,
    MAX_LABEL,
    NODE_ID,
    Endpoint,
    Text,
    known_node,
    operation,
    operator_of,
    stake_token,
    what_it_pays_for,
)
from counterfoil.cli.options import Address, Common, common, example
from counterfoil.cli.output import amount
from counterfoil.cli.signing import Plan, Signing, Step, allowing, hand, signing


@click.command(epilog=example("counterfoil node register --endpoint https://node.example --stake 2000000000 --dry-run"))
@click.option("--endpoint", type=Endpoint(), required=True, help="Where agents reach it, such as https://node.example.")
@click.option("--stake", type=AMOUNT, required=True, help="What to stake, in base units of the stake token.")
@click.option("--from", "stated", type=Address(), help="Who would register, for a dry run without a key.")
@signing
@common
def register(common: Common, endpoint: str, stake: int, stated: str | None, how: Signing) -> None:
    """Register a node and stake on it.

    The key comes from COUNTERFOIL_KEYSTORE or COUNTERFOIL_PRIVATE_KEY; --dry-run needs none.
    """
    run = operation(common, how)
    registry = NodeRegistry(run.chain)
    by = hand(how, stated=stated)
    paying = allowing(stake_token(registry), registry.address, by.address, stake)
    registering = Step(
        f"register a node at {endpoint} with a stake of {amount(stake)}", registry.register_node(endpoint, stake)
    )
    slots = what_it_pays_for(stake, registry.parameters())
    sent = run.carry_out(Plan([*paying.steps, registering], [*paying.notes, slots]), by)
    if sent:
        node_id = events(registering.write, sent[-1], "NodeRegistered")[0]["node_id"]
        then = f"counterfoil node list-service {node_id} --category ... --price ..."
        run.finish({"node_id": node_id}, sent, f"Node {node_id} is registered. {slots}", then)


@click.command("set-endpoint", epilog=example("counterfoil node set-endpoint 1 https://node.example --dry-run"))
@click.argument("node_id", type=NODE_ID)
@click.argument("url", type=Endpoint())
@signing
@common
def set_endpoint(common: Common, node_id: int, url: str, how: Signing) -> None:
    """Say where agents reach node NODE_ID."""
    run = operation(common, how)
    registry = NodeRegistry(run.chain)
    node = known_node(registry, node_id)
    document = {"node_id": node_id, "endpoint": url}
    then = f"counterfoil node status {node_id} --probe"
    if node.endpoint == url:
        run.finish(document, [], f"Node {node_id} is at {url} already: nothing was sent.", then)
        return
    step = Step(f"move node {node_id} from {node.endpoint} to {url}", registry.set_endpoint(node_id, url))
    sent = run.carry_out(Plan([step]), hand(how, operator_of(node_id, node)))
    if sent:
        run.finish(document, sent, f"Agents reach node {node_id} at {url} from now on.", then)


@click.command(epilog=example("counterfoil node capability 1 routing.v1 on --dry-run"))
@click.argument("node_id", type=NODE_ID)
@click.argument("name", type=Text(MAX_LABEL))
@click.argument("state", type=click.Choice(["on", "off"]))
@signing
@common
def capability(common: Common, node_id: int, name: str, state: str, how: Signing) -> None:
    """Switch a capability of node NODE_ID on or off: NAME is such as routing.v1."""
    run = operation(common, how)
    registry = NodeRegistry(run.chain)
    node = known_node(registry, node_id)
    enabled = state == "on"
    document = {"node_id": node_id, "capability": name, "enabled": enabled}
    then = f"counterfoil node status {node_id}"
    if registry.has_capability(node_id, name) == enabled:
        said = f"The capability {name} of node {node_id} is {state} already: nothing was sent."
        run.finish(document, [], said, then)
        return
    step = Step(
        f"switch the capability {name} of node {node_id} {state}", registry.set_capability(node_id, name, enabled)
    )
    sent = run.carry_out(Plan([step]), hand(how, operator_of(node_id, node)))
    if sent:
        run.finish(document, sent, f"The capability {name} of node {node_id} is {state}.", then)
