"""The market in memory beside the database's answers."""

import threading
from contextlib import contextmanager, suppress

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import delete, event, update

from counterfoil.market import LiveMarket, snapshot
from counterfoil.routing.lottery import LotteryError, rank
from indexer import events as ev
from indexer.changes import changes_since
from indexer.errors import StoreError, UnknownBlockError
from indexer.source import Source
from indexer.store.tables import BLOCK, CURSOR, META, METADATA
from indexer.store.writer import open_writer
from tests.indexer.model import Chain, Node, listed, opened, registered
from tests.market.machine import MarketMachine

EXAMPLES = {"sqlite": 20, "postgresql": 4}
SEED = bytes(range(32))


def test_live_market__over_blocks_reorgs_and_rebuilds__is_what_the_database_says(new_database, request):
    class Machine(MarketMachine):
        pass

    Machine.new_database = staticmethod(new_database)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES[request.node.callspec.params["new_database"]],
            stateful_step_count=12,
            deadline=None,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


class Scene:
    """A chain, its index, and the market in memory."""

    def __init__(self, chain, writer):
        self.chain, self.writer, self.store = chain, writer, writer.store
        self.live = LiveMarket(writer.store)

    def mine(self, *blocks):
        first = self.writer.cursor().number + 1 if self.writer.cursor() else 1
        for events in blocks:
            self.chain.append(*events)
        fetched = Source(Node(self.chain), self.writer.deployment).fetch(first, self.chain.head)
        self.writer.append(fetched.headers, fetched.logs, None)

    def edit(self, statement):
        with self.store.write() as connection:
            connection.execute(statement)

    @contextmanager
    def counted(self):
        """The statements that the database is asked inside the block."""
        asked = []

        def hear(_connection, _cursor, statement, *_):
            asked.append(statement)

        event.listen(self.store.engine, "before_cursor_execute", hear)
        yield asked
        event.remove(self.store.engine, "before_cursor_execute", hear)


@pytest.fixture
def scene(new_database):
    chain = Chain()
    with new_database() as place, open_writer(place, chain.deployment()) as writer:
        yield Scene(chain, writer)


@pytest.fixture
def trading(scene):
    """Three services in one category and one in another, on two nodes."""
    listings = [listed(1, 1), listed(2, 2), listed(3, 1, "llm:completion")]
    scene.mine(registered(1) + registered(2) + listings)
    return scene


def test_head__of_an_empty_index__says_how_to_fill_it(scene):
    with pytest.raises(UnknownBlockError, match="fill it with `counterfoil index run`"):
        scene.live.head()
    scene.mine([*registered(1), listed(1, 1)])
    assert [one.service_id for one in scene.live.snapshot("data:crypto").candidates] == [1]


def test_head__while_the_index_stands_still__is_the_same_value_for_one_question(trading):
    first = trading.live.head()
    with trading.counted() as asked:
        assert trading.live.head() is first
    assert len(asked) == 1 + asked.count("BEGIN")


def test_head__after_an_empty_block__names_it_and_keeps_every_slate(trading):
    before = trading.live.head()
    trading.mine([])
    after = trading.live.head()
    assert (after.as_of.block, after.as_of.hash) == (trading.chain.head, trading.chain.blocks[-1]["hash"])
    assert all(after.slates[category] is slate for category, slate in before.slates.items())


def test_head__after_a_change__keeps_the_other_categories_and_the_other_candidates(trading):
    before = trading.live.snapshot("data:crypto"), trading.live.snapshot("llm:completion")
    trading.mine([ev.PriceChanged(2, 12)])
    after = trading.live.snapshot("data:crypto"), trading.live.snapshot("llm:completion")
    assert after[1].candidates is before[1].candidates
    assert after[0].candidates[0] is before[0].candidates[0]
    assert [one.price for one in after[0].candidates] == [10, 12]
    assert [one.price for one in before[0].candidates] == [10, 10]


def test_head__after_a_change_of_a_node__moves_all_its_services(trading):
    trading.live.head()
    trading.mine([opened(1, node_id=1, service_id=1)])
    assert [one.active_sessions for one in trading.live.snapshot("data:crypto").candidates] == [1, 0]
    assert [one.active_sessions for one in trading.live.snapshot("llm:completion").candidates] == [1]


def test_head__after_a_reorg_that_took_a_category_away__has_nobody_there(trading):
    trading.mine([listed(4, 2, "data:weather")])
    assert len(trading.live.snapshot("data:weather").candidates) == 1
    ancestor = trading.chain.head - 1
    trading.chain.rewind(ancestor)
    trading.chain.append()
    trading.chain.append(ev.PriceChanged(2, 12))
    fetched = Source(Node(trading.chain), trading.writer.deployment).fetch(ancestor + 1, trading.chain.head)
    trading.writer.replace_from(ancestor, fetched.headers, fetched.logs, None)
    assert trading.live.snapshot("data:weather").candidates == ()
    assert [one.price for one in trading.live.snapshot("data:crypto").candidates] == [10, 12]


def test_head__after_a_rebuild_that_changed_rows__reads_all_again(trading):
    """A later version may make other rows of the same logs: the block stays, its digest does not."""
    trading.live.head()
    service = METADATA.tables["service"]
    trading.edit(update(service).values(price=77))
    trading.edit(update(BLOCK).where(BLOCK.c.number == trading.chain.head).values(digest="0x" + "77" * 32))
    assert [one.price for one in trading.live.snapshot("data:crypto").candidates] == [77, 77]


def test_head__once_its_block_is_final__says_so(trading):
    assert trading.live.head().as_of.finalized is False
    trading.edit(update(CURSOR).values(finalized=trading.chain.head))
    assert trading.live.head().as_of.finalized is True


def test_head__of_an_index_that_became_another_deployments__says_so(trading):
    trading.live.head()
    trading.mine([])
    trading.edit(update(META).where(META.c.name == "address.NodeRegistry").values(value="0x" + "99" * 20))
    for _ in range(2):
        with pytest.raises(StoreError, match="of another deployment than it was: start this program again"):
            trading.live.head()


def test_head__of_an_index_that_became_empty__says_so(trading):
    trading.live.head()
    trading.edit(delete(CURSOR))
    with pytest.raises(UnknownBlockError, match="is empty"):
        trading.live.head()


def test_snapshot__with_an_impossible_row__names_it_and_leaves_other_categories_alone(trading):
    trading.live.head()
    trading.mine([ev.PriceChanged(2, 2**128)])
    for _ in range(2):
        with pytest.raises(LotteryError, match=f"candidate 2: price {2**128} is not below {2**128}"):
            trading.live.snapshot("data:crypto")
    assert len(trading.live.snapshot("llm:completion").candidates) == 1
    trading.mine([ev.PriceChanged(2, 12)])
    assert trading.live.snapshot("data:crypto") == snapshot(trading.store, "data:crypto")


def test_snapshot__with_many_readers_while_the_index_moves__is_always_of_one_block(trading):
    """Each block sets both prices to its own number, so that a torn snapshot would show two."""
    last, found = 40, []

    def read():
        while not found or found[-1][0] < last:
            taken = trading.live.snapshot("data:crypto")
            prices = {one.price for one in taken.candidates}
            found.append((taken.as_of.block, prices, rank(taken.candidates, SEED).order[0]))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(trading.chain.head + 1, last + 1):
        trading.mine([ev.PriceChanged(1, number), ev.PriceChanged(2, number)])
    for thread in threads:
        thread.join()
    assert all(prices == {block} for block, prices, _ in found if block > 2)
    assert {block for block, _, _ in found} <= set(range(2, last + 1))


def test_head__asked_by_two_threads_at_once__reads_changes_one_after_the_other(trading, monkeypatch):
    """The second must not put changes since an old mark onto a newer market: nobody may meet inside the reading."""
    inside, met = threading.Barrier(2), []

    def read(store, mark):
        with suppress(threading.BrokenBarrierError):
            met.append(inside.wait(timeout=0.2))
        return changes_since(store, mark)

    monkeypatch.setattr("counterfoil.market.live.changes_since", read)
    threads = [threading.Thread(target=trading.live.head) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []
