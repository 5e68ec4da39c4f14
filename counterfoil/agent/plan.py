"""What a run would spend and where: the same discovery, draw and caps as the run's own, and nothing is signed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from counterfoil.agent.desk import Desk
from counterfoil.agent.draws import new_draw, price_of, receipt_of
from counterfoil.agent.funding import shortage
from counterfoil.agent.market import Market
from counterfoil.agent.runner import capped
from counterfoil.agent.spending import OverPolicyError, Reservation, check
from counterfoil.agent.workflow import Step, Workflow
from counterfoil.agent.workflows import Found, NothingFoundError, check_inputs, find, no_choice
from counterfoil.chain.errors import ChainError
from counterfoil.receipts import Receipt, ReceiptError
from counterfoil.routing.lottery import LotteryError

SHOWN = 4


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as it would go now; amounts are base units, `order` the first services of its draw with their prices.

    `deposit` is what all of its sessions may take at the price of the first, and `refused` says why nothing would be
    opened with that one once the steps before it took all of theirs, "" where it would be.
    """

    step_id: str
    category: str
    found_by: str
    order: tuple[tuple[int, int], ...]
    deposit: int
    reason: str
    refused: str


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps, what they would deposit together, and what the wallet lacks, "" for nothing."""

    steps: tuple[PlannedStep, ...]
    deposit: int
    lacks: str


def plan(desk: Desk, workflow: Workflow) -> Plan:
    """Say what a run of a workflow would spend and where.

    Raises NothingFoundError, and UserError for an input that cannot be sent.
    """
    check_inputs(workflow)
    steps: list[PlannedStep] = []
    reserved: list[Reservation] = []
    for step in workflow.steps:
        market, why = desk.markets.now()
        found = find(step, market, why)
        receipt = _decided(desk, market, step, found, len(steps))
        reserved.append(_reservation(market, workflow, step, receipt))
        steps.append(_planned(step, found, receipt, reserved[-1], _refused(desk, workflow, step, reserved)))
    return Plan(tuple(steps), sum(step.deposit for step in steps), _lacks(desk, max(step.deposit for step in steps)))


def _lacks(desk: Desk, deposit: int) -> str:
    """What the dearest step lacks: its deposit comes back, but for what was paid, before the next one is made."""
    try:
        shortage(desk, deposit)
        desk.wallet.sender()
    except ChainError as error:  # UnfundedError, or a wallet and a relayer without gas
        return str(error)
    return ""


def _decided(desk: Desk, market: Market, step: Step, found: Found, ahead: int) -> Receipt:
    draw = new_draw(
        desk, market, found.category, step.max_price_per_call, step.service_id, found.found_by or None, ahead=ahead
    )
    try:
        return receipt_of(desk, draw)
    except (ReceiptError, LotteryError) as error:
        raise NothingFoundError(f"Step {step.id}: {no_choice(found.category, error)}.") from error


def _planned(step: Step, found: Found, receipt: Receipt, reservation: Reservation, refused: str) -> PlannedStep:
    prices = {candidate.service_id: candidate.price for candidate in receipt.candidates}
    return PlannedStep(
        step_id=step.id,
        category=found.category,
        found_by=found.found_by,
        order=tuple((service_id, prices[service_id]) for service_id in receipt.order[:SHOWN]),
        deposit=reservation.deposit,
        reason=receipt.reason,
        refused=refused,
    )


def _reservation(market: Market, workflow: Workflow, step: Step, receipt: Receipt) -> Reservation:
    run_id = f"plan of {workflow.name}"
    place = market.place(receipt.choice, receipt.snapshot_block)
    operator = place.operator if place else "nobody"
    price = price_of(receipt)
    calls = step.calls * (2 if step.try_both else 1)
    return Reservation(f"{run_id}/{step.id}", run_id, operator, price, calls, price * calls, datetime.now(UTC).date())


def _refused(desk: Desk, workflow: Workflow, step: Step, reserved: Sequence[Reservation]) -> str:
    *before, wanted = reserved
    try:
        check(capped(desk.policy, workflow.budget), desk.spending, wanted, before)
    except OverPolicyError as error:
        return str(error)
    deposit = wanted.price_per_call * step.calls
    if step.budget is not None and deposit > step.budget:
        return f"a deposit of {deposit} is above the step's budget of {step.budget}"
    return ""
