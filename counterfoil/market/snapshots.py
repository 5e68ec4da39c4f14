"""A category as of one block, asked of the database."""

from dataclasses import dataclass

from counterfoil.routing.lottery import Candidate, Slate
from indexer import query
from indexer.query import AsOf, At, CandidateRow, ServiceView, Store


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The routable listings of a category after one block."""

    as_of: AsOf
    category: str
    candidates: Slate


def snapshot(store: Store, category: str, at: At = None) -> Snapshot:
    """Read a category as of a block (number, hash, or None for the newest indexed one).

    Raises UnknownBlockError for a block that the index does not hold, and LotteryError for rows that no chain could
    have produced.
    """
    answer = query.candidates(store, category, at)
    return Snapshot(answer.as_of, category, Slate(map(candidate_of, answer.value)))


def candidate_of(row: CandidateRow | ServiceView) -> Candidate:
    """What the lottery reads of a row. Raises LotteryError for a row that no chain could have produced."""
    return Candidate(
        service_id=row.service_id,
        price=row.price,
        stake=row.stake,
        rating_sum=row.rating_sum,
        rating_count=row.rating_count,
        active_sessions=row.active_sessions,
        max_concurrent=row.max_concurrent,
    )
