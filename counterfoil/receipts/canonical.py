"""A receipt as canonical JSON (RFC 8785), and its digest: keccak256 of them, the `decision` on chain."""

from typing import Any, Final

import rfc8785
from eth_hash.auto import keccak

from counterfoil.receipts.model import KIND, PROVES_NOT, VERSION, Receipt, ReceiptError
from counterfoil.routing import reasons
from counterfoil.routing.lottery import ALGORITHM, Candidate, Ranking

MAX_BYTES: Final = 4 * 2**20

Document = dict[str, Any]


def canonical(receipt: Receipt) -> bytes:
    """The receipt's bytes. Raises ReceiptError when they are more than MAX_BYTES."""
    data: bytes = rfc8785.dumps(document(receipt))
    if len(data) > MAX_BYTES:
        raise ReceiptError(f"a receipt is at most {MAX_BYTES} bytes, not {len(data)}")
    return data


def digest_of(data: bytes) -> str:
    """keccak256 of a receipt's bytes, as 0x and 64 lower-case digits."""
    return "0x" + keccak(data).hex()


def digest(receipt: Receipt) -> str:
    """The receipt's digest, which the session carries as its `decision`."""
    return digest_of(canonical(receipt))


def document(receipt: Receipt) -> Document:
    """The receipt as JSON values: amounts are decimal strings, other integers are below 2**53."""
    ranking = receipt.ranking
    return {
        "v": VERSION,
        "kind": KIND,
        "algorithm": ALGORITHM,
        "chain_id": receipt.chain_id,
        "contracts": dict(receipt.contracts),
        "snapshot": {"block": receipt.snapshot_block, "hash": receipt.snapshot_hash},
        "request": _request(receipt),
        "candidates": [_candidate(candidate, ranking) for candidate in receipt.candidates],
        "relaxed": ranking.relaxed,
        "relaxed_reason": _relaxed_reason(ranking),
        "order": list(receipt.order),
        "attempt": receipt.attempt,
        "skipped": [{"service_id": skip.service_id, "reason": skip.reason} for skip in receipt.skipped],
        "choice": receipt.choice,
        "reason": receipt.reason,
        "previous": receipt.previous,
        "proves_not": list(PROVES_NOT),
    }


def _request(receipt: Receipt) -> Document:
    request = receipt.request
    # Left out where nobody looked: receipts from before there was the field keep their digests.
    found_by = {} if request.found_by is None else {"found_by": request.found_by}
    return found_by | {
        "category": request.category,
        "client": request.client,
        "nonce": request.nonce,
        "price_cap": None if request.price_cap is None else str(request.price_cap),
        "draw_seed": receipt.draw_seed,
        "policy": request.policy.name,
        "pinned": request.pinned,
    }


def _candidate(candidate: Candidate, ranking: Ranking) -> Document:
    inputs: Document = {
        "service_id": candidate.service_id,
        "price": str(candidate.price),
        "stake": str(candidate.stake),
        "rating_sum": candidate.rating_sum,
        "rating_count": candidate.rating_count,
        "active_sessions": candidate.active_sessions,
        "max_concurrent": str(candidate.max_concurrent),
    }
    drop = ranking.dropped.get(candidate.service_id)
    if drop is not None:
        return inputs | {"rejected": {"rule": drop.rule, "sentence": drop.sentence}}
    terms = ranking.terms[candidate.service_id]
    named = {
        "reputation": str(terms.reputation),
        "stake": str(terms.stake),
        "cheapness": str(terms.cheapness),
        "headroom": str(terms.headroom),
        "quality": str(terms.quality),
    }
    return inputs | {"terms": named, "weight": str(terms.weight)}


def _relaxed_reason(ranking: Ranking) -> str | None:
    if not ranking.relaxed or ranking.price_cap is None:
        return None
    return reasons.relaxed(ranking.price_cap, len(ranking.candidates))
