"""The checks themselves: pure functions of what was read, each giving one sentence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from counterfoil.audit.model import WHERE, Check, Outcome, Part, SessionFacts
from counterfoil.chain.contracts import LENS_LIMIT, Weighed
from counterfoil.chain.typed_data import Terms, session_id
from counterfoil.receipts import CONTRACTS, Policy, Receipt, policy_name
from counterfoil.routing.lottery import Candidate, Ranking, category_id, draw_seed

LENS_ORDER = 16


def check_id(part: Part, facts: SessionFacts, chain_id: int, manager: str) -> Check:
    """Whether the session's id follows from its terms."""
    terms = Terms(
        client=facts.client,
        service_id=facts.service_id,
        node_id=facts.node_id,
        price=facts.price,
        signer=facts.signer,
        draw_seed=facts.draw_seed,
        policy=facts.policy,
        nonce=facts.nonce,
        attempt=facts.attempt,
        snapshot_block=facts.snapshot_block,
        price_cap=facts.price_cap,
        decision=facts.decision,
    )
    found = session_id(chain_id, manager, terms)
    if found == facts.session_id:
        return _ok(part, "session id", "follows from the session's terms")
    return mismatch(part, "session id", f"the session's terms {WHERE[part]} give the id {found}")


def check_same_facts(facts: SessionFacts, state: SessionFacts) -> Check:
    """Whether the index tells of the session what the chain tells."""
    difference = _first_term(facts, state, "on chain")
    if difference is not None:
        return mismatch(Part.INDEX, "session", difference)
    return _ok(Part.INDEX, "session", "every term is the one on chain")


def check_log(facts: SessionFacts, logged: SessionFacts | None) -> Check:
    """Whether the index's row of a session says what its raw SessionOpened log in the same index says."""
    if logged is None:
        sentence = f"session: block {facts.opened_block} has no log of its opening in the index"
        return mismatch(Part.INDEX, "log", sentence)
    difference = _first_term(facts, logged, "in its log")
    if difference is not None:
        return mismatch(Part.INDEX, "log", difference)
    return _ok(Part.INDEX, "log", "every term is the one in the session's log")


def _first_term(facts: SessionFacts, other: SessionFacts, there: str) -> str | None:
    for field in fields(SessionFacts):
        mine, theirs = getattr(facts, field.name), getattr(other, field.name)
        if mine != theirs:
            return f"session: {field.name} is {mine} in the index and {theirs} {there}"
    return None


def check_snapshot(part: Part, facts: SessionFacts, block_hash: str | None) -> Check:
    """Whether the snapshot's block is the one that the session names."""
    block = facts.snapshot_block
    if block_hash is None:
        return unknown(part, "snapshot", f"block {block} is not {WHERE[part]}: index from the first block on")
    if block_hash != facts.snapshot_hash:
        sentence = f"block {block} has the hash {block_hash} {WHERE[part]}, the session names {facts.snapshot_hash}"
        return mismatch(part, "snapshot", sentence)
    return _ok(part, "snapshot", f"block {block} has the hash that the session names")


def check_seed(part: Part, facts: SessionFacts) -> Check:
    """Whether the seed follows from snapshot, client, draw number and category."""
    snapshot, category = bytes.fromhex(facts.snapshot_hash[2:]), bytes.fromhex(facts.category_id[2:])
    found = "0x" + draw_seed(snapshot, facts.client, facts.nonce, category).hex()
    if found != facts.draw_seed:
        return mismatch(part, "seed", f"draw {facts.nonce} of the client has the seed {found}, not {facts.draw_seed}")
    return _ok(part, "seed", f"follows from the snapshot, the client and its draw {facts.nonce}")


def check_market(part: Part, found: Sequence[Candidate], reference: Sequence[Candidate], source: Part) -> Check:
    """Whether the candidates are those of `reference`, which came from `source`; names the first that differs."""
    difference = first_difference(found, reference, WHERE[part], WHERE[source])
    if difference is not None:
        return mismatch(part, "candidates", difference)
    return _ok(part, "candidates", f"all {len(found)} are as {WHERE[source]}")


def first_difference(found: Sequence[Candidate], reference: Sequence[Candidate], here: str, there: str) -> str | None:
    """The first input that differs, by service_id and then by field, as a sentence; None when all agree."""
    mine = {candidate.service_id: candidate for candidate in found}
    theirs = {candidate.service_id: candidate for candidate in reference}
    for service_id in sorted(mine.keys() | theirs.keys()):
        if service_id not in theirs:
            return f"candidate {service_id}: is routable {here} and is missing {there}"
        if service_id not in mine:
            return f"candidate {service_id}: is not routable {here} and is listed {there}"
        for field in fields(Candidate):
            one, other = getattr(mine[service_id], field.name), getattr(theirs[service_id], field.name)
            if one != other:
                return f"candidate {service_id}: {field.name} is {one} {here} and {other} {there}"
    return None


def check_service(part: Part, facts: SessionFacts, ranking: Ranking) -> Check:
    """Whether the served service is the one that the policy gives for this attempt."""
    name = "choice"
    if facts.policy == Policy.PINNED:
        return _check_pinned(part, facts, ranking)
    if facts.policy != Policy.LOTTERY:
        return unknown(part, name, f"policy {policy_name(facts.policy)} cannot be replayed by this version: upgrade")
    order = ranking.order
    if facts.attempt >= len(order):
        sentence = f"attempt {facts.attempt} is past the {len(order)} kept candidates {WHERE[part]}"
        return mismatch(part, name, sentence)
    expected = order[facts.attempt]
    if expected != facts.service_id:
        sentence = f"service {facts.service_id} was served, attempt {facts.attempt} of the draw is service {expected}"
        return mismatch(part, name, f"{sentence} {WHERE[part]}")
    return _ok(part, name, f"service {expected} is attempt {facts.attempt} of the replayed draw")


def _check_pinned(part: Part, facts: SessionFacts, ranking: Ranking) -> Check:
    if all(candidate.service_id != facts.service_id for candidate in ranking.candidates):
        sentence = f"pinned service {facts.service_id} was not routable at block {facts.snapshot_block} {WHERE[part]}"
        return mismatch(part, "choice", sentence)
    if facts.attempt > 0:
        return mismatch(part, "choice", f"attempt {facts.attempt} of a pin, which has one service only")
    return _ok(part, "choice", f"service {facts.service_id} is pinned and was routable")


def check_price(part: Part, facts: SessionFacts, candidates: Iterable[Candidate]) -> Check:
    """What the session paid beside the price of the snapshot. A difference is worth a note, and breaks no rule."""
    prices = {candidate.service_id: candidate.price for candidate in candidates}
    snapshot = prices.get(facts.service_id)
    if facts.price > facts.max_price:
        sentence = f"the session's price {facts.price} is above its max_price {facts.max_price} {WHERE[part]}"
        return mismatch(part, "price", sentence)
    if snapshot is not None and (facts.price, facts.max_price) != (snapshot, snapshot):
        sentence = f"price {facts.price} with max_price {facts.max_price}, the snapshot's price is {snapshot}"
        return Check(part, "price", Outcome.NOTE, sentence)
    return _ok(part, "price", f"{facts.price} is the snapshot's price and max_price")


def check_lens(facts: SessionFacts, ranking: Ranking, order: Sequence[int], weighed: Weighed) -> Check:
    """Whether the lens on chain gives the same terms and the same order as the replay."""
    if weighed.relaxed != ranking.relaxed:
        return mismatch(Part.STATE, "lens", f"relaxed is {weighed.relaxed} by the lens and {ranking.relaxed} here")
    rules = {service_id: drop.rule for service_id, drop in ranking.dropped.items()}
    difference = _first_entry(weighed.dropped, rules) or _first_entry(weighed.terms, ranking.terms)
    if difference is not None:
        return mismatch(Part.STATE, "lens", difference)
    if tuple(order) != ranking.order[: len(order)] or len(order) < min(facts.attempt + 1, LENS_ORDER):
        shown = list(ranking.order[: max(len(order), 1)])
        return mismatch(Part.STATE, "lens", f"the order is {list(order)} by the lens and {shown} here")
    return _ok(Part.STATE, "lens", f"weights and order[0..{len(order) - 1}] are the same on chain")


def lens_too_small(size: int) -> Check:
    """The lens ranks only small categories; the replay in Python has no such limit."""
    sentence = f"not asked: the category has {size} listings, the lens ranks at most {LENS_LIMIT}"
    return Check(Part.STATE, "lens", Outcome.NOTE, sentence)


def _first_entry(lens: Mapping[int, object], here: Mapping[int, object]) -> str | None:
    for service_id in sorted(lens.keys() | here.keys()):
        if lens.get(service_id) != here.get(service_id):
            return f"candidate {service_id}: {lens.get(service_id)} by the lens and {here.get(service_id)} here"
    return None


def check_receipt(
    facts: SessionFacts, receipt: Receipt, chain_id: int, addresses: Mapping[str, str], source: Part
) -> Check:
    """Whether a receipt with the right digest tells of this session."""
    pairs: list[tuple[str, object, object]] = [
        ("chain_id", receipt.chain_id, chain_id),
        *((f"contracts.{name}", receipt.contracts[name], addresses[name]) for name in CONTRACTS),
        ("snapshot.block", receipt.snapshot_block, facts.snapshot_block),
        ("snapshot.hash", receipt.snapshot_hash, facts.snapshot_hash),
        ("request.category's id", "0x" + category_id(receipt.request.category).hex(), facts.category_id),
        ("request.client", receipt.request.client, facts.client),
        ("request.nonce", receipt.request.nonce, facts.nonce),
        ("request.price_cap", _cap(receipt.request.price_cap), _cap(facts.cap)),
        ("request.policy", receipt.request.policy.name, policy_name(facts.policy)),
        ("request.draw_seed", receipt.draw_seed, facts.draw_seed),
        ("attempt", receipt.attempt, facts.attempt),
        ("choice", receipt.choice, facts.service_id),
    ]
    for name, written, committed in pairs:
        if written != committed:
            sentence = f"{name} is {written} in the receipt and {committed} {WHERE[source]}"
            return mismatch(Part.RECEIPT, "terms", sentence)
    return _ok(Part.RECEIPT, "terms", "snapshot, request, attempt and choice are the session's")


def unknown(part: Part, name: str, sentence: str) -> Check:
    """A check that cannot be made, and why."""
    return Check(part, name, Outcome.UNKNOWN, sentence)


def mismatch(part: Part, name: str, sentence: str) -> Check:
    """A check that found what must not be."""
    return Check(part, name, Outcome.MISMATCH, sentence)


def receipt_matches(decision: str) -> Check:
    """The receipt's own digest is the session's decision, and it follows from its own inputs."""
    return _ok(Part.RECEIPT, "digest", f"{decision} is the session's decision, and the receipt replays from itself")


def _cap(cap: int | None) -> str:
    return "none" if cap is None else str(cap)


def _ok(part: Part, name: str, sentence: str) -> Check:
    return Check(part, name, Outcome.OK, sentence)
