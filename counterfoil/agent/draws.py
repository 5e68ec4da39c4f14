"""A draw and its receipts: what a run decides by, and what its plan shows beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from counterfoil.agent.desk import Desk
from counterfoil.agent.market import Market
from counterfoil.receipts import Policy, Receipt, Request, Skipped, build
from counterfoil.receipts.model import MAX_REASON
from counterfoil.routing.lottery import Candidate
from counterfoil.texts import printable

MAX_ATTEMPTS: Final = 4
"""How many services of one order are tried, from the first that was reached."""
MAX_SKIPS: Final = 16


@dataclass(frozen=True, slots=True)
class Draw:
    """One draw, and the attempt of it that a session is to be opened with, after those that were skipped."""

    snapshot_block: int
    snapshot_hash: str
    request: Request
    candidates: Sequence[Candidate]
    attempt: int
    skipped: tuple[Skipped, ...]


def new_draw(
    desk: Desk, market: Market, category: str, price_cap: int | None, pinned: int | None, found_by: str | None,
    *, ahead: int = 0,
) -> Draw:  # fmt: skip
    """The wallet's next draw in a category, or the one so many draws ahead."""
    snapshot = market.snapshot(category)
    policy = Policy.LOTTERY if pinned is None else Policy.PINNED
    nonce = desk.manager.draws(desk.address) + ahead
    request = Request(category, desk.address, nonce, price_cap, policy, pinned, found_by)
    return Draw(snapshot.as_of.block, snapshot.as_of.hash, request, snapshot.candidates, 0, ())


def draw_of(receipt: Receipt) -> Draw:
    """The draw that a receipt was made of."""
    return Draw(
        receipt.snapshot_block,
        receipt.snapshot_hash,
        receipt.request,
        receipt.candidates,
        receipt.attempt,
        receipt.skipped,
    )


def receipt_of(desk: Desk, draw: Draw) -> Receipt:
    """Decide. Raises ReceiptError and LotteryError where nothing can be chosen."""
    return build(
        chain_id=desk.chain.chain_id,
        contracts=dict(desk.chain.deployment.addresses()),
        snapshot_block=draw.snapshot_block,
        snapshot_hash=draw.snapshot_hash,
        request=draw.request,
        candidates=draw.candidates,
        attempt=draw.attempt,
        skipped=draw.skipped,
        previous=desk.journal.last_decision(desk.address),
    )


def price_of(receipt: Receipt) -> int:
    """The price a call, in base units, of what a receipt chose."""
    return next(candidate.price for candidate in receipt.candidates if candidate.service_id == receipt.choice)


def after(draw: Draw, receipt: Receipt, why: str) -> tuple[tuple[Skipped, ...], Draw | None]:
    """What is skipped once the choice of a receipt is, and the draw that goes on: None where enough was tried."""
    skipped = (*draw.skipped, Skipped(receipt.choice, line(why)))
    tried = sum(skip.reason.startswith(("node not", "session")) for skip in skipped)
    ended = len(skipped) >= min(MAX_SKIPS, len(receipt.order)) or tried >= MAX_ATTEMPTS
    return skipped, None if ended else replace(draw, attempt=draw.attempt + 1, skipped=skipped)


def line(text: str) -> str:
    """A text as a receipt takes one: a printable line of at most MAX_REASON characters."""
    return printable(text, " ")[:MAX_REASON]
