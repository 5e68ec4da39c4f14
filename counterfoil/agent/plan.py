"""What a run would spend and where: the same discovery, draw and caps as the run's own, and nothing is signed."""

from dataclasses import dataclass
from datetime import UTC, datetime

from counterfoil.agent.desk import Desk
from counterfoil.agent.funding import UnfundedError, shortage
from counterfoil.agent.runner import capped
from counterfoil.agent.spending import OverPolicyError, Reservation, check
from counterfoil.agent.workflow import Step, Workflow
from counterfoil.agent.workflows import find
from counterfoil.receipts import Policy, Request, build

SHOWN = 4


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as it would go now; amounts are base units, `order` the first services of its draw with their prices.

    `deposit` is what all of its sessions may take at the price of the first, and `refused` says why nothing would be
    opened with that one, "" where it would be.
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
    """Say what a run of a workflow would spend and where. Raises NothingFoundError and ReceiptError."""
    steps = tuple(_step(desk, workflow, step, position) for position, step in enumerate(workflow.steps))
    deposit = sum(step.deposit for step in steps)
    return Plan(steps, deposit, _lacks(desk, max((step.deposit for step in steps), default=0)))


def _lacks(desk: Desk, deposit: int) -> str:
    """What the dearest step lacks: its deposit comes back, but for what was paid, before the next one is made."""
    try:
        shortage(desk, deposit)
        desk.wallet.sender()
    except UnfundedError as error:
        return str(error)
    return ""


def _step(desk: Desk, workflow: Workflow, step: Step, position: int) -> PlannedStep:
    market, why = desk.markets.now()
    found = find(step, market, why)
    snapshot = market.snapshot(found.category)
    request = Request(
        category=found.category,
        client=desk.address,
        nonce=desk.manager.draws(desk.address) + position,
        price_cap=step.max_price_per_call,
        policy=Policy.LOTTERY if step.service_id is None else Policy.PINNED,
        pinned=step.service_id,
        found_by=found.found_by or None,
    )
    receipt = build(
        chain_id=desk.chain.chain_id,
        contracts=dict(desk.chain.deployment.addresses()),
        snapshot_block=snapshot.as_of.block,
        snapshot_hash=snapshot.as_of.hash,
        request=request,
        candidates=snapshot.candidates,
    )
    prices = {candidate.service_id: candidate.price for candidate in receipt.candidates}
    order = tuple((service_id, prices[service_id]) for service_id in receipt.order[:SHOWN])
    place = market.place(receipt.choice, receipt.snapshot_block)
    reservation = _reservation(workflow, step, order[0][1], place.operator if place else "")
    return PlannedStep(
        step_id=step.id,
        category=found.category,
        found_by=found.found_by,
        order=order,
        deposit=reservation.deposit,
        reason=receipt.reason,
        refused=_refused(desk, workflow, step, reservation),
    )


def _reservation(workflow: Workflow, step: Step, price: int, operator: str) -> Reservation:
    run_id = f"plan of {workflow.name}"
    day = datetime.now(UTC).date()
    calls = step.calls * (2 if step.try_both else 1)
    return Reservation(f"{run_id}/{step.id}", run_id, operator, price, calls, price * calls, day)


def _refused(desk: Desk, workflow: Workflow, step: Step, reservation: Reservation) -> str:
    try:
        check(capped(desk.policy, workflow.budget), desk.spending, reservation)
    except OverPolicyError as error:
        return str(error)
    deposit = reservation.price_per_call * step.calls
    if step.budget is not None and deposit > step.budget:
        return f"a deposit of {deposit} is above the step's budget of {step.budget}"
    return ""
