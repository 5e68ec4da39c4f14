"""The benchmark of reads asks an index whose answers are those of the rows it wrote."""

import pytest

from benchmarks import reads
from benchmarks.indexing_stores import databases
from indexer import query
from indexer.rows import NodeLoad, Service
from indexer.store.database import open_locked

SERVICES, VERSIONS, BLOCKS, SEED = 20, 12, 200, 7


def expected(row_type, at):
    """The rows as of a block, by walking over all versions."""
    change = next(change for change in reads.changes(VERSIONS) if change[0] is row_type)
    versions = reads.version_rows(change, SERVICES, BLOCKS, SEED)
    return [row for start, end, *row in versions if start <= at and (end is None or end > at)]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_reads__of_a_small_index__are_answered_as_its_versions_say(kind, tmp_path):
    with databases(kind, tmp_path) as new, open_locked(new()) as store:
        assert reads.fill(store, SERVICES, VERSIONS, BLOCKS, SEED) > SERVICES * VERSIONS + BLOCKS
        for at in (reads.FIRST, 50, 111, BLOCKS):
            found = query.candidates(store, reads.CATEGORY, at).value
            services, loads = expected(Service, at), expected(NodeLoad, at)
            assert [(row.service_id, row.price) for row in found] == [(row[0], row[4]) for row in services]
            assert [(row.node_id, row.active_sessions) for row in found] == [tuple(row) for row in loads]
        assert all(ask(store, at) for ask in reads.questions(SERVICES).values() for at in (None, 50))
