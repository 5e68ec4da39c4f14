"""`counterfoil node stake`, `unstake` and `withdraw`: what stands behind a node, and what it earned."""

from typing import Any

import click

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import NodeRegistry, NodeState, RegistryParameters, SessionManager, Write
from counterfoil.chain.sender import Mined, events
from counterfoil.cli.operating import AMOUNT, NODE_ID, connected, known_node, operator_of, stake_token, what_it_pays_for
from counterfoil.cli.options import Address, Common, common, example
from counterfoil.cli.output import amount, moment
from counterfoil.cli.progress import span
from counterfoil.cli.signing import Plan, Signing, Step, allowing, carry_out, finish, hand, signing, transactions
from indexer.errors import UserError


@click.command(epilog=example("counterfoil node stake 1 1000000 --dry-run"))
@click.argument("node_id", type=NODE_ID)
@click.argument("more", metavar="AMOUNT", type=AMOUNT)
@signing
@common
def stake(common: Common, node_id: int, more: int, how: Signing) -> None:
    """Stake AMOUNT more on node NODE_ID, in base units of the stake token. It counts at once."""
    chain = connected(common)
    registry = NodeRegistry(chain)
    node, parameters = known_node(registry, node_id), registry.parameters()
    by = hand(how, operator_of(node_id, node))
    paying = allowing(stake_token(registry), registry.address, by.address, more)
    step = Step(f"stake {amount(more)} more on node {node_id}", registry.add_stake(node_id, more))
    after = what_it_pays_for(node_id, node.stake + more, parameters)
    mined = carry_out(chain, Plan([*paying.steps, step], [*paying.notes, after]), by, how, common.json)
    if mined:
        changed = _stakes(step.write, mined)
        said = (
            f"{what_it_pays_for(node_id, changed['stake'], parameters)} See it with: counterfoil node status {node_id}"
        )
        finish(_document(node_id, changed, parameters, mined), said, common.json)


@click.command(epilog=example("counterfoil node unstake 1 1000000 --dry-run"))
@click.argument("node_id", type=NODE_ID)
@click.argument("less", metavar="AMOUNT", type=AMOUNT)
@signing
@common
def unstake(common: Common, node_id: int, less: int, how: Signing) -> None:
    """Take AMOUNT of the stake out of node NODE_ID, in base units of the stake token.

    It stops counting for capacity and routing at once, and can be withdrawn after the unbonding period.
    """
    chain = connected(common)
    registry = NodeRegistry(chain)
    node, parameters = known_node(registry, node_id), registry.parameters()
    step = Step(f"take {amount(less)} of the stake out of node {node_id}", registry.request_unstake(node_id, less))
    remedies = {"registry: more than the stake": f"Node {node_id} stakes {amount(node.stake)}: name at most that."}
    plan = Plan([step], _what_unstaking_does(node_id, node, less, parameters), remedies)
    mined = carry_out(chain, plan, hand(how, operator_of(node_id, node)), how, common.json)
    if mined:
        changed = _stakes(step.write, mined)
        said = (
            f"{amount(changed['unbonding'])} are released on {moment(changed['release_at'])}. "
            f"{what_it_pays_for(node_id, changed['stake'], parameters)} Then: counterfoil node withdraw {node_id}"
        )
        finish(_document(node_id, changed, parameters, mined), said, common.json)


def _what_unstaking_does(node_id: int, node: NodeState, less: int, parameters: RegistryParameters) -> list[str]:
    period = span(parameters.unbonding_period)
    notes = [f"It is released {period} after it is mined, and can be slashed until then."]
    if node.unbonding:
        notes.append(f"The {amount(node.unbonding)} that are unbonding already wait those {period} anew.")
    if less <= node.stake:
        notes.append(what_it_pays_for(node_id, node.stake - less, parameters))
    return notes


def _stakes(write: Write, mined: list[Mined]) -> dict[str, Any]:
    return events(write, mined[-1], "StakeChanged")[0]


def _document(
    node_id: int, changed: dict[str, Any], parameters: RegistryParameters, mined: list[Mined]
) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "stake": str(changed["stake"]),
        "unbonding": str(changed["unbonding"]),
        "release_at": changed["release_at"],
        "max_concurrent": str(changed["stake"] // parameters.stake_per_slot),
        "enough_to_be_routed": changed["stake"] >= parameters.min_stake,
        "transactions": transactions(mined),
    }


@click.command(
    epilog=example(
        "counterfoil node withdraw 1 --dry-run",
        "counterfoil node withdraw 1 --earnings --dry-run",
    )
)
@click.argument("node_id", type=NODE_ID, required=False)
@click.option("--earnings", is_flag=True, help="What sessions paid the account, instead of released stake.")
@click.option("--to", type=Address(), help="Who is paid the earnings; by default the account itself.")
@signing
@common
def withdraw(common: Common, node_id: int | None, earnings: bool, to: str | None, how: Signing) -> None:
    """Withdraw the released stake of node NODE_ID, or with --earnings what sessions paid.

    Earnings belong to the account, whichever of its nodes earned them: NODE_ID may be left out for them.
    """
    if to is not None and not earnings:
        raise UserError("Released stake is paid to the operator alone: leave --to out, or say --earnings.")
    if earnings:
        _withdraw_earnings(common, connected(common), node_id, to, how)
    elif node_id is None:
        raise UserError("Name a node for its released stake, or say --earnings for what sessions paid.")
    else:
        _withdraw_stake(common, connected(common), node_id, how)


def _withdraw_stake(common: Common, chain: Chain, node_id: int, how: Signing) -> None:
    registry = NodeRegistry(chain)
    node = known_node(registry, node_id)
    held = amount(node.unbonding)
    step = Step(f"withdraw {held} of released stake of node {node_id}", registry.withdraw_stake(node_id))
    remedies = {
        "registry: still unbonding": f"The {held} are released on {moment(node.release_at)}: withdraw them then.",
        "registry: nothing unbonding": (
            f"Take stake out with counterfoil node unstake {node_id} AMOUNT first. "
            "Earnings are withdrawn with --earnings."
        ),
    }
    mined = carry_out(chain, Plan([step], (), remedies), hand(how, operator_of(node_id, node)), how, common.json)
    if mined:
        paid = registry.node(node_id, mined[-1].block - 1).unbonding
        finish(
            {"node_id": node_id, "withdrawn": str(paid), "to": node.operator, "transactions": transactions(mined)},
            f"{amount(paid)} of stake were paid to {node.operator}. See the rest: counterfoil node status {node_id}",
            common.json,
        )


def _withdraw_earnings(common: Common, chain: Chain, node_id: int | None, to: str | None, how: Signing) -> None:
    manager = SessionManager(chain)
    role = None if node_id is None else operator_of(node_id, known_node(NodeRegistry(chain), node_id))
    by = hand(how, role)
    if by.address is None:
        raise UserError("Nobody is named whose earnings are meant: name a node, or set COUNTERFOIL_KEYSTORE.")
    receiver = to or by.address
    credit = amount(manager.credit_of(by.address))
    step = Step(f"withdraw all earnings of {by.address}, {credit}, to {receiver}", manager.withdraw(receiver))
    mined = carry_out(chain, Plan([step]), by, how, common.json)
    if mined:
        paid = events(step.write, mined[-1], "CreditWithdrawn")[0]["amount"]
        finish(
            {"account": by.address, "withdrawn": str(paid), "to": receiver, "transactions": transactions(mined)},
            f"{amount(paid)} of earnings were paid to {receiver}.",
            common.json,
        )
