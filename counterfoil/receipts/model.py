"""What a receipt holds, and how it follows from its inputs: `build` is the only way to make one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from counterfoil.routing import lottery
from counterfoil.routing.lottery import Candidate, LotteryError, Ranking

VERSION: Final = 1
KIND: Final = "session"
CONTRACTS: Final = ("NodeRegistry", "ReputationLedger", "SessionManager")
MAX_CANDIDATES: Final = 8192
MAX_REASON: Final = 280
SAFE_INTEGER: Final = 2**53

PROVES_NOT: Final = (
    "that the client tried only this snapshot, this cap and this address",
    "that skipped attempts really failed",
    "that the average price was free of decoy listings",
    "that node and client are different people",
)

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")
_WORD = re.compile(r"0x[0-9a-f]{64}")
_CATEGORY = re.compile(r"[a-z0-9][a-z0-9.:-]{0,63}")


class ReceiptError(ValueError):
    """A receipt that cannot be made, read or believed; the message is a sentence that says why."""


class Policy(IntEnum):
    """How the service was chosen, by its code on chain. The two codes after these have no receipt yet."""

    PINNED = 0
    LOTTERY = 1


POLICY_NAMES: Final = ("PINNED", "LOTTERY", "NODE_SCORE", "ROUTING_PEER")


def policy_name(code: int) -> str:
    """The name of any policy code on chain (0 to 255), or its number where it has none."""
    return POLICY_NAMES[code] if 0 <= code < len(POLICY_NAMES) else str(code)


@dataclass(frozen=True, slots=True)
class Request:
    """What the client asked: `price_cap` in base units a call, `pinned` a service_id with PINNED only.

    `found_by` says in a line of at most MAX_REASON characters how the client came to the category, where it looked for
    one; receipts without it have no such field.
    """

    category: str
    client: str
    nonce: int
    price_cap: int | None = None
    policy: Policy = Policy.LOTTERY
    pinned: int | None = None
    found_by: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A service that stood before the choice in the order, and in a sentence why it was not used."""

    service_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """One decision. Everything after `previous` follows from what stands before it."""

    chain_id: int
    contracts: Mapping[str, str]
    snapshot_block: int
    snapshot_hash: str
    request: Request
    candidates: tuple[Candidate, ...]
    attempt: int
    skipped: tuple[Skipped, ...]
    previous: str | None
    draw_seed: str
    ranking: Ranking
    order: Sequence[int]
    choice: int
    reason: str


def build(
    *,
    chain_id: int,
    contracts: Mapping[str, str],
    snapshot_block: int,
    snapshot_hash: str,
    request: Request,
    candidates: Iterable[Candidate],
    attempt: int = 0,
    skipped: Sequence[Skipped] = (),
    previous: str | None = None,
) -> Receipt:
    """Decide, and write down why.

    `contracts` names the addresses of CONTRACTS in lower case (others are left out), `candidates` are the
    routable listings of the category after `snapshot_block`, `skipped` has one entry for each attempt before.
    Raises ReceiptError, with a sentence, for inputs no decision can follow from.
    """
    listed = candidates if isinstance(candidates, tuple) else tuple(candidates)  # a slate keeps its weights
    _check_frame(chain_id, contracts, snapshot_block, snapshot_hash, previous)
    _check_request(request)
    if len(listed) > MAX_CANDIDATES:
        raise ReceiptError(f"a receipt holds at most {MAX_CANDIDATES} candidates, not {len(listed)}")
    seed = _seed(snapshot_hash, request)
    ranking = _rank(listed, seed, request.price_cap)
    order = _order(ranking, request)
    _check_attempt(order, attempt, skipped)
    return Receipt(
        chain_id=chain_id,
        contracts=MappingProxyType({name: contracts[name] for name in CONTRACTS}),
        snapshot_block=snapshot_block,
        snapshot_hash=snapshot_hash,
        request=request,
        candidates=ranking.candidates,
        attempt=attempt,
        skipped=tuple(skipped),
        previous=previous,
        draw_seed="0x" + seed.hex(),
        ranking=ranking,
        order=order,
        choice=order[attempt],
        reason=_reason(ranking, request, attempt),
    )


def replay(receipt: Receipt) -> Ranking:
    """Rank again from nothing but the receipt's own inputs."""
    seed = _seed(receipt.snapshot_hash, receipt.request)
    return _rank(tuple(receipt.candidates), seed, receipt.request.price_cap)


def _seed(snapshot_hash: str, request: Request) -> bytes:
    category = lottery.category_id(request.category)
    return lottery.draw_seed(bytes.fromhex(snapshot_hash[2:]), request.client, request.nonce, category)


def _rank(candidates: Sequence[Candidate], seed: bytes, price_cap: int | None) -> Ranking:
    try:
        return lottery.rank(candidates, seed, price_cap)
    except LotteryError as error:
        raise ReceiptError(str(error)) from error


def _order(ranking: Ranking, request: Request) -> Sequence[int]:
    if request.pinned is None:
        return ranking.order
    try:
        lottery.pinned_reason(ranking, request.pinned)
    except LotteryError as error:
        raise ReceiptError(str(error)) from error
    return (request.pinned,)


def _reason(ranking: Ranking, request: Request, attempt: int) -> str:
    if request.pinned is None:
        return lottery.reason(ranking, attempt)
    return lottery.pinned_reason(ranking, request.pinned)


def _check_frame(
    chain_id: int, contracts: Mapping[str, str], block: int, block_hash: str, previous: str | None
) -> None:
    _check_safe("chain_id", chain_id)
    for name in CONTRACTS:
        if not _ADDRESS.fullmatch(contracts.get(name, "")):
            raise ReceiptError(f"contracts.{name} is not an address of 0x and 40 lower-case hexadecimal digits")
    _check_safe("snapshot.block", block)
    if not _WORD.fullmatch(block_hash):
        raise ReceiptError("snapshot.hash is not 0x and 64 lower-case hexadecimal digits")
    if previous is not None and not _WORD.fullmatch(previous):
        raise ReceiptError("previous is neither null nor 0x and 64 lower-case hexadecimal digits")


def _check_request(request: Request) -> None:
    if not _CATEGORY.fullmatch(request.category):
        raise ReceiptError(f"request.category {request.category[:80]!r} is not a category's name")
    if not _ADDRESS.fullmatch(request.client):
        raise ReceiptError("request.client is not an address of 0x and 40 lower-case hexadecimal digits")
    _check_safe("request.nonce", request.nonce)
    if request.price_cap is not None and not 0 <= request.price_cap < lottery.NO_CAP:
        raise ReceiptError("request.price_cap is neither null nor an amount below the largest uint256")
    if (request.policy is Policy.PINNED) != (request.pinned is not None):
        raise ReceiptError("request.pinned names a service exactly when request.policy is PINNED")
    if request.pinned is not None:
        _check_safe("request.pinned", request.pinned)
    if request.found_by is not None:
        _check_sentence("request.found_by", request.found_by)


def _check_attempt(order: Sequence[int], attempt: int, skipped: Sequence[Skipped]) -> None:
    if not order:
        raise ReceiptError("there are no routable candidates at this block, so there is nothing to choose")
    if not 0 <= attempt < len(order):
        raise ReceiptError(f"attempt {attempt} is past the {len(order)} services of the order")
    if tuple(skip.service_id for skip in skipped) != tuple(order[:attempt]):
        raise ReceiptError(f"skipped does not name the {attempt} services that stand before the choice, in order")
    for skip in skipped:
        _check_sentence(f"the reason for skipping service {skip.service_id}", skip.reason)


def _check_sentence(name: str, text: str) -> None:
    if not 1 <= len(text) <= MAX_REASON or not text.isprintable():
        raise ReceiptError(f"{name} is not a line of 1 to {MAX_REASON} characters")


def _check_safe(name: str, number: int) -> None:
    # RFC 8785 writes numbers as doubles: from 2**53 on they would not be exact.
    if not 0 <= number < SAFE_INTEGER:
        raise ReceiptError(f"{name} {number} is not an integer from 0 to 2**53 - 1")
