"""The indexing benchmark measures what it says: the same events and the same rows on every line of its table."""

import pytest

from benchmarks import indexing, indexing_floor, indexing_naive, verification
from benchmarks.indexing_chain import EVENTS_A_ROUND, traded_chain
from benchmarks.indexing_stages import sampled
from benchmarks.indexing_stores import databases
from indexer import query
from indexer.store.database import open_locked, open_store

EVENTS = 8 * EVENTS_A_ROUND


@pytest.fixture(scope="module")
def chain():
    with traded_chain(EVENTS) as made:
        yield made


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_benchmark__of_a_small_market__indexes_all_of_it_and_its_floor_writes_the_same_rows(chain, store, tmp_path):
    logs = indexing_floor.transfer(chain)
    assert EVENTS // 2 < len(logs) <= EVENTS + 200
    with databases(store, tmp_path) as new:
        filled, copied = new(), new()
        with sampled() as stages:
            indexing._index(chain, filled)
        assert stages
        with open_store(filled) as ours, open_locked(copied) as theirs:
            status = query.status(ours).value
            assert (status.raw_logs, status.quarantined) == (len(logs), 0)
            rows = indexing_floor.stored_rows(ours)
            indexing_floor.insert(theirs, rows)
            again = indexing_floor.stored_rows(theirs)
            assert {name: sorted(some) for name, some in again.items() if name != "meta"} == {
                name: sorted(some) for name, some in rows.items() if name != "meta"
            }
        assert indexing_naive.index(chain, new(), 0, chain.head, versions=True) == len(logs)


def test_verification__of_a_small_market__proves_every_block_with_events_in_full_mode_only(chain, tmp_path):
    best = {mode: verification.backfill(chain, tmp_path / mode, mode) for mode in verification.MODES}
    bloom, full = (best[mode][1] for mode in verification.MODES)
    assert (bloom.logs, bloom.blocks) == (full.logs, full.blocks)
    assert bloom.verified_blocks < full.verified_blocks <= full.blocks
    lines = verification.table(best)
    assert [line.split()[0] for line in lines] == ["verify", "bloom", "full"]
    assert lines[1].split()[5] == "1.00"
