"""The seam between a row of the index and a record that counts."""

from counterfoil.routing.experience import Record
from indexer.records import FoundRecord
from indexer.rows import NO_JUDGE


def record_of(found: FoundRecord) -> Record:
    """Take of a row what counts."""
    fact = found.fact
    return Record(
        service_id=fact.service_id,
        session_id=fact.session_id,
        tool=fact.tool,
        need=fact.need,
        task=fact.task,
        worked=fact.worked,
        calls=fact.calls,
        judge_score=None if fact.judge_score == NO_JUDGE else fact.judge_score,
        latency_ms=fact.latency_ms,
        cost=fact.cost,
        price=found.price,
        note=fact.note,
        recorded_at=found.timestamp,
    )
