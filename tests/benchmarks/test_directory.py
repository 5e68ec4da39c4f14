"""The benchmark of the directory asks an index that says what its rows say, and counts whole answers."""

import pytest

from benchmarks import directory
from benchmarks.directory_index import Size, append_record, categories, fill, replace_newest_block, sample_record
from benchmarks.load import load
from counterfoil.directory import Directory, LiveListings, StoredListings
from indexer.store.database import open_locked

SIZE = Size(listings=40, records=800)
ASK = {"routable": False, "after": 0, "limit": 9}


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "index.sqlite"
    with open_locked(path) as store:
        fill(store, SIZE)
    return path


def test_index__of_a_small_directory__has_every_record_and_follows_new_blocks(database):
    with open_locked(database) as store:
        live, stored = LiveListings(Directory(store)), StoredListings(store)
        listed = live.page(None, routable=False, after=0, limit=100).value.items
        assert (len(listed), sum(runs(known) for _, known in listed)) == (SIZE.listings, SIZE.records)
        append_record(store, sample_record(SIZE, 1))
        assert live.best("token", categories()[0], **ASK) == stored.best("token", categories()[0], **ASK)
        replace_newest_block(store, 1)
        assert live.best("token", categories()[0], **ASK) == stored.best("token", categories()[0], **ASK)


def runs(known):
    return sum(summary.runs for summary in known.needs.values())


def test_questions__of_any_turn__are_answered_by_the_real_server(database):
    with directory.serving(database) as server:
        for question in directory.questions(SIZE):
            found = load(server.port, question.paths(1)[:20], clients=3, seconds=0.05)
            assert found.rate > 0
            assert found.size > 100
        added, replaced = directory.until_shown(server, database, SIZE)
        assert len(added) == len(replaced) == directory.APPENDED
        with pytest.raises(RuntimeError, match="404 Not Found"):
            load(server.port, ["/services/99999"], clients=1, seconds=0)


def test_constant__of_a_size__is_counted_whole():
    with directory.constant_of(5000) as server:
        assert load(server.port, ["/constant"], clients=2, seconds=0.05).size == 5000
