"""`counterfoil node stake`, `unstake` and `withdraw`: what stands behind a node, and what it earned."""

from typing import Any

import click

from counterfoil.chain.contracts import NodeRegistry, NodeState, RegistryParameters, SessionManager, Write
from counterfoil.chain.sender import Mined, events
from counterfoil.cli.operating import AMOUNT, NODE_ID, known_node, operation, operator_of, stake_token, what_it_pays_for
from counterfoil.cli.options import Address, Common, common, example
from counterfoil.cli.output import amount, moment
from counterfoil.cli.progress import span
from counterfoil.cli.signing import Operation, Plan, Signing, Step, allowing, hand, signing
from indexer.errors import UserError


@click.command(epilog=example("counterfoil node stake 1 1000000 --dry-run"))
@click.argument("node_id", type=NODE_ID)
@click.argument("more", metavar="AMOUNT", type=AMOUNT)
@signing
@common
def stake(common: Common, node_id: int, more: int, how: Signing) -> None:
    """Stake AMOUNT more on node NODE_ID, in base units of the stake token. It counts at once."""
    run = operation(common, how)
    registry = NodeRegistry(run.chain)
    node, parameters = known_node(registry, node_id), registry.parameters()
    by = hand(how, operator_of(node_id, node))
    paying = allowing(stake_token(registry), registry.address, by.address, more)
    step = Step(f"stake {amount(more)} more on node {node_id}", registry.add_stake(node_id, more))
    after = what_it_pays_for(node.stake + more, parameters)
    sent = run.carry_out(Plan([*paying.steps, step], [*paying.notes, after]), by)
    if sent:
        document = _document(node_id, _stakes(step.write, sent), parameters)
        said = f"Node {node_id} has its new stake. {what_it_pays_for(int(document['stake']), parameters)}"
        run.finish(document, sent, said, f"counterfoil node status {node_id}")


@click.command(epilog=example("counterfoil node unstake 1 1000000 --dry-run"))
@click.argument("node_id", type=NODE_ID)
@click.argument("less", metavar="AMOUNT", type=AMOUNT)
@signing
@common
def unstake(common: Common, node_id: int, less: int, how: Signing) -> None:
    """Take AMOUNT of the stake out of node NODE_ID, in base units of the stake token.

    It stops counting for capacity and routing at once, and can be withdrawn after the unbonding period.
    """
    run = operation(common, how)
    registry = NodeRegistry(run.chain)
    node, parameters = known_node(registry, node_id), registry.parameters()
    step = Step(f"take {amount(less)} of the stake out of node {node_id}", registry.request_unstake(node_id, less))
    remedies = {"registry: more than the stake": f"Node {node_id} stakes {amount(node.stake)}: name at most that."}
    plan = Plan([step], _what_unstaking_does(node, less, parameters), remedies)
    sent = run.carry_out(plan, hand(how, operator_of(node_id, node)))
    if sent:
        document = _document(node_id, _stakes(step.write, sent), parameters)
        said = (
            f"{amount(document['unbonding'])} are released on {moment(document['release_at'])}, to be withdrawn then. "
            f"{what_it_pays_for(int(document['stake']), parameters)}"
        )
        run.finish(document, sent, said, f"counterfoil node withdraw {node_id}")


def _what_unstaking_does(node: NodeState, less: int, parameters: RegistryParameters) -> list[str]:
    period = span(parameters.unbonding_period)
    notes = [f"It is released {period} after it is mined, and can be slashed until then."]
    if node.unbonding:
        notes.append(f"The {amount(node.unbonding)} that are unbonding already wait those {period} anew.")
    if less <= node.stake:
        notes.append(what_it_pays_for(node.stake - less, parameters))
    return notes


def _stakes(write: Write, sent: list[Mined]) -> dict[str, Any]:
    return events(write, sent[-1], "StakeChanged")[0]


def _document(node_id: int, changed: dict[str, Any], parameters: RegistryParameters) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "stake": str(changed["stake"]),
        "unbonding": str(changed["unbonding"]),
        "release_at": changed["release_at"],
        "max_concurrent": str(changed["stake"] // parameters.stake_per_slot),
        "enough_to_be_routed": changed["stake"] >= parameters.min_stake,
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
    if node_id is None and not earnings:
        raise UserError("Name a node for its released stake, or say --earnings for what sessions paid.")
    run = operation(common, how)
    if node_id is not None and not earnings:
        _withdraw_stake(run, node_id)
    else:
        _withdraw_earnings(run, node_id, to)


def _withdraw_stake(run: Operation, node_id: int) -> None:
    registry = NodeRegistry(run.chain)
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
    sent = run.carry_out(Plan([step], (), remedies), hand(run.how, operator_of(node_id, node)))
    if sent:
        paid = registry.node(node_id, sent[-1].block - 1).unbonding
        run.finish(
            {"node_id": node_id, "withdrawn": str(paid), "to": node.operator},
            sent,
            f"{amount(paid)} of stake were paid to {node.operator}.",
            f"counterfoil node status {node_id}",
        )


def _withdraw_earnings(run: Operation, node_id: int | None, to: str | None) -> None:
    manager, registry = SessionManager(run.chain), NodeRegistry(run.chain)
    role = None if node_id is None else operator_of(node_id, known_node(registry, node_id))
    by = hand(run.how, role)
    if by.address is None:
        raise UserError("Nobody is named whose earnings are meant: name a node, or set COUNTERFOIL_KEYSTORE.")
    receiver = to or by.address
    credit = amount(manager.credit_of(by.address))
    step = Step(f"withdraw all earnings of {by.address}, {credit}, to {receiver}", manager.withdraw(receiver))
    sent = run.carry_out(Plan([step]), by)
    if sent:
        paid = events(step.write, sent[-1], "CreditWithdrawn")[0]["amount"]
        run.finish(
            {"account": by.address, "withdrawn": str(paid), "to": receiver},
            sent,
            f"{amount(paid)} of earnings were paid to {receiver}.",
            f"counterfoil nodes --operator {by.address}",
        )
