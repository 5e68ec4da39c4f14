"""`counterfoil node register` and `list-service`: what operators do on chain."""

from contextlib import closing

import click

from counterfoil.chain.connection import Chain, connect
from counterfoil.chain.contracts import NodeRegistry, Token
from counterfoil.chain.sender import events
from counterfoil.cli.options import Common, common, example
from counterfoil.cli.output import amount, print_json
from counterfoil.cli.signing import Signing, Step, account, carry_out, say_only, signing, transactions
from indexer.errors import UserError


@click.command(epilog=example("counterfoil node register --endpoint https://node.example --stake 2000000000 --dry-run"))
@click.option("--endpoint", required=True, help="Where agents reach the node, such as https://node.example.")
@click.option("--stake", type=click.IntRange(0), required=True, help="What to stake, in base units of the stake token.")
@signing
@common
def register(common: Common, endpoint: str, stake: int, dry_run: bool, yes: bool) -> None:
    """Register a node and stake on it.

    The key comes from COUNTERFOIL_KEYSTORE or COUNTERFOIL_PRIVATE_KEY; --dry-run needs none.
    """
    chain = connected(common)
    registry = NodeRegistry(chain)
    token = stake_token(chain)
    registering = Step(
        f"register a node at {endpoint} with a stake of {amount(stake)}", registry.register_node(endpoint, stake)
    )
    approving = Step(
        f"let the registry take {amount(stake)} of the token {token.address}",
        token.approve(registry.address, stake),
    )
    if dry_run:
        say_only([approving, registering], common.json)
        return
    key = account()
    check_balance(token, key.address, stake)
    enough = token.allowance(key.address, registry.address) >= stake
    steps = [registering] if enough else [approving, registering]
    mined = carry_out(chain, key, steps, Signing(dry_run, yes), common.json)
    node_id = events(registering.write, mined[-1], "NodeRegistered")[0]["node_id"]
    if common.json:
        print_json({"node_id": node_id, "transactions": transactions(mined)})
        return
    click.echo(
        f"Node {node_id} is registered. Next: counterfoil node list-service {node_id} --category ... --price ..."
    )


@click.command(
    "list-service",
    epilog=example("counterfoil node list-service 1 --category data:crypto-price --price 900 --dry-run"),
)
@click.argument("node_id", type=click.IntRange(1))
@click.option("--category", required=True, help="What is served, such as data:crypto-price.")
@click.option("--price", type=click.IntRange(0), required=True, help="Per call, in base units of the payment token.")
@click.option("--metadata-uri", default="", help="Where the service is described.")
@signing
@common
def list_service(
    common: Common, node_id: int, category: str, price: int, metadata_uri: str, dry_run: bool, yes: bool
) -> None:
    """List a service of a node: one per category, for ever."""
    chain = connected(common)
    step = Step(
        f"list {category} on node {node_id} at {amount(price)} a call",
        NodeRegistry(chain).list_service(node_id, category, price, metadata_uri),
    )
    if dry_run:
        say_only([step], common.json)
        return
    mined = carry_out(chain, account(), [step], Signing(dry_run, yes), common.json)
    service_id = events(step.write, mined[-1], "ServiceListed")[0]["service_id"]
    if common.json:
        print_json({"service_id": service_id, "transactions": transactions(mined)})
        return
    click.echo(f"Service {service_id} is listed. See it with: counterfoil service {service_id}")


def connected(common: Common) -> Chain:
    """The chain that the settings name, closed when the command ends. Raises UserError and RetryableError."""
    return click.get_current_context().with_resource(closing(connect(common.settings)))


def stake_token(chain: Chain) -> Token:
    """The token that the deployment's registry takes as stake."""
    return Token(chain, chain.deployment.contracts["NodeRegistry"].arguments["stake_token"])


def check_balance(token: Token, owner: str, stake: int) -> None:
    """Raise UserError when an account cannot pay a stake."""
    held = token.balance_of(owner)
    if held < stake:
        raise UserError(
            f"{owner} holds {amount(held)} of the stake token {token.address} and the stake is {amount(stake)}: "
            "send it more, or stake less."
        )
