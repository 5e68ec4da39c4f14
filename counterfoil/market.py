"""The seam between what happened and what to do: the index at one block becomes frozen candidates."""

from dataclasses import dataclass

from counterfoil.routing.lottery import Candidate
from indexer import query
from indexer.query import At, CandidateRow, Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The routable listings of a category after one block; `nodes` maps each service_id to its node_id."""

    chain_id: int
    block: int
    block_hash: str
    category: str
    candidates: tuple[Candidate, ...]
    nodes: dict[int, int]


def snapshot(store: Store, category: str, at: At = None) -> Snapshot:
    """Read a category as of a block (number, hash, or None for the newest indexed one).

    Raises UnknownBlockError for a block that the index does not hold, and LotteryError for rows that no chain could
    have produced.
    """
    answer = query.candidates(store, category, at)
    return Snapshot(
        chain_id=answer.as_of.chain_id,
        block=answer.as_of.block,
        block_hash=answer.as_of.hash,
        category=category,
        candidates=tuple(_candidate(row) for row in answer.value),
        nodes={row.service_id: row.node_id for row in answer.value},
    )


def _candidate(row: CandidateRow) -> Candidate:
    return Candidate(
        service_id=row.service_id,
        price=row.price,
        stake=row.stake,
        rating_sum=row.rating_sum,
        rating_count=row.rating_count,
        active_sessions=row.active_sessions,
        max_concurrent=row.max_concurrent,
    )
