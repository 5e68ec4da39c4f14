"""The directory in memory beside the database's answers, over blocks, reorgs and rebuilds, on both stores."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from counterfoil.directory import Directory, LiveListings, StoredListings, board_as_of, directory, listings
from indexer import events as ev
from indexer.errors import ForkError, QuestionError, StoreUnavailableError, UnknownBlockError
from indexer.posted import add_posted
from indexer.rows import Experience
from indexer.source import Source
from indexer.store.writer import open_writer
from tests.indexer.model import (
    CLIENT,
    OPERATOR,
    Chain,
    Node,
    attested,
    listed,
    load,
    opened,
    registered,
    session_id,
    settled,
)

EXAMPLES = {"sqlite": 15, "postgresql": 3}
LABELS = ("bitcoin price", "bitcoin spot price", "weather in a town", "")
NEEDS = ("data:crypto", "data:weather")


@st.composite
def events(draw):
    number, service = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    return draw(
        st.sampled_from(
            [
                ev.PriceChanged(service, draw(st.integers(0, 20))),
                ev.ServiceStatusChanged(service, draw(st.booleans())),
                ev.EndpointChanged(1, draw(st.sampled_from(["http://here", "http://there"]))),
                ev.NodeTransferred(1, draw(st.sampled_from([CLIENT, OPERATOR]))),
                settled(number, paid=40, calls=2),
                attested(
                    number, service, tool=draw(st.sampled_from(["curl", "chart"])), need=draw(st.sampled_from(NEEDS)),
                    task=draw(st.sampled_from(LABELS)), worked=draw(st.booleans()),
                ),
            ]
        )
    )  # fmt: skip


BLOCKS = st.lists(st.lists(events(), max_size=4), min_size=1, max_size=3)


class Machine(RuleBasedStateMachine):
    new_database = None

    def __init__(self):
        super().__init__()
        self.stack = ExitStack()

    @initialize()
    def deploy(self):
        self.chain = Chain()
        self.chain.append(*registered(1), *(listed(number, 1) for number in (1, 2, 3)))
        self.chain.append(*(opened(number, 1, 1) for number in range(1, 7)))
        place = self.stack.enter_context(self.new_database())
        self.writer = self.stack.enter_context(open_writer(place, self.chain.deployment()))
        load(self.writer, self.chain)
        self.live = LiveListings(Directory(self.writer.store))

    @rule(new=BLOCKS)
    def mine(self, new):
        first = self.chain.head + 1
        for block in new:
            self.chain.append(*block)
        load(self.writer, self.chain, first)

    @rule(depth=st.integers(1, 3), new=BLOCKS)
    def reorganise(self, depth, new):
        ancestor = max(3, self.chain.head - depth)
        self.chain.rewind(ancestor)
        for block in new:
            self.chain.append(*block)
        if self.chain.head > ancestor:
            replace(self.writer, self.chain, ancestor)

    @rule(depth=st.integers(1, 3), new=BLOCKS)
    def reorganise_and_back(self, depth, new):
        """Nobody asks in between: the newest block is the same again, or one above it."""
        kept = self.chain.blocks[:]
        self.reorganise(depth, new)
        ancestor = max(3, len(kept) - 1 - depth)
        if self.chain.blocks != kept and len(kept) - 1 > ancestor:
            self.chain.blocks[:] = kept
            found = Source(Node(self.chain), self.writer.deployment).fetch(ancestor + 1, self.chain.head)
            self.writer.replace_from(ancestor, found.headers, found.logs, None)

    @rule(number=st.integers(1, 6), tool=st.sampled_from(["curl", "chart", "map"]), cost=st.integers(0, 30))
    def post(self, number, tool, cost):
        """A record that the rules may keep from counting, now or for good: the directory must not care."""
        record = Experience(
            session_id=session_id(number), tool=tool, service_id=1, need=NEEDS[number % 2], task=LABELS[number % 4],
            worked=True, calls=1, failures=0, judge_score=90, latency_ms=number, cost=cost, message="", note=tool,
        )  # fmt: skip
        with self.writer.store.add() as connection:
            add_posted(connection, record, "0x")

    @rule()
    def rebuild(self):
        self.writer.rebuild()

    @invariant()
    def both_say_the_same(self):
        if not hasattr(self, "live"):
            return
        stored = StoredListings(self.writer.store, None)
        ask = {"routable": False, "after": 0, "limit": 9}
        assert self.live.page(None, **ask) == stored.page(None, **ask)
        assert self.live.page("data:crypto", **ask) == stored.page("data:crypto", **ask)
        assert self.live.best("bitcoin prices", "data:crypto", **ask) == stored.best(
            "bitcoin prices", "data:crypto", **ask
        )
        assert self.live.one(2) == stored.one(2)

    def teardown(self):
        self.stack.close()


def test_directory__over_blocks_reorgs_and_rebuilds__is_what_the_database_says(new_database, request):
    class OnStore(Machine):
        pass

    OnStore.new_database = staticmethod(new_database)
    run_state_machine_as_test(
        OnStore,
        settings=settings(
            max_examples=EXAMPLES[request.node.callspec.params["new_database"]],
            stateful_step_count=10,
            deadline=None,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


@pytest.fixture
def tried(writer, chain):
    """Three records of service 1 in three blocks, the first and the last of one session."""
    chain.append(*registered(1), listed(1, 1), listed(2, 1))
    chain.append(opened(1, 1, 1), opened(2, 1, 1))
    chain.append(attested(1, need="data:crypto", task="bitcoin price"))
    chain.append(attested(2, need="data:crypto", task="bitcoin price", worked=False))
    chain.append(attested(1, tool="chart", need="data:crypto"))
    load(writer, chain)
    return chain


def runs(listed_):
    _, known = listed_
    return {group: of.runs for group, of in known.needs.items()}


def test_stored_listings__as_of_each_block__know_the_records_of_then(writer, tried):
    head = tried.head
    found = [runs(StoredListings(writer.store, block).one(1).value) for block in range(head - 3, head + 1)]
    assert found == [
        {},
        {("curl", "data:crypto"): 1},
        {("curl", "data:crypto"): 2},
        {("curl", "data:crypto"): 2, ("chart", "data:crypto"): 1},
    ]


def test_live_listings__read_before_a_record__stay_as_they_were(writer, tried):
    live = LiveListings(Directory(writer.store))
    before = live.one(1).value
    tried.append(attested(2, tool="chart", need="data:crypto"))
    load(writer, tried, tried.head)
    assert runs(live.one(1).value)["chart", "data:crypto"] == 2
    assert runs(before)["chart", "data:crypto"] == 1


def test_one__that_is_not_there__is_none_with_the_block(writer, tried):
    for made in (LiveListings(Directory(writer.store)), StoredListings(writer.store, None)):
        answer = made.one(9)
        assert (answer.value, answer.as_of.block) == (None, tried.head)


def test_board_as_of__with_too_many_records__says_what_can_be_asked(writer, tried, monkeypatch):
    monkeypatch.setattr(directory, "MAX_RECORDS_AS_OF", 2)
    with pytest.raises(QuestionError, match=f"By block {tried.head} there are more than 2 records"):
        board_as_of(writer.store, None)
    with pytest.raises(QuestionError, match="these services have more than 2 records"):
        StoredListings(writer.store, None).one(1)
    assert board_as_of(writer.store, tried.head - 1)[1].experience(1).needs["curl", "data:crypto"].runs == 2


def test_board__of_an_empty_index__says_so(writer):
    with pytest.raises(UnknownBlockError, match="is empty"), Directory(writer.store).board():
        pass


def test_live_listings__as_of_a_block__ask_the_database_only_where_it_is_not_the_newest(writer, tried, monkeypatch):
    monkeypatch.setattr(directory, "MAX_RECORDS_AS_OF", 0)
    newest = Directory(writer.store)
    ask = {"routable": False, "after": 0, "limit": 9}
    with newest.board() as (as_of, _):
        pass
    for at in (None, as_of.block, as_of.hash):
        assert LiveListings(newest, at).best("bitcoin", "", **ask).as_of == as_of
    with pytest.raises(QuestionError, match="too many to add up"):
        LiveListings(newest, as_of.block - 1).best("bitcoin", "", **ask)


@pytest.mark.parametrize(
    "kind", [lambda store: LiveListings(Directory(store)), lambda store: StoredListings(store, None)]
)
def test_listings__after_what_no_page_reaches__say_so(writer, tried, kind):
    made = kind(writer.store)
    with pytest.raises(QuestionError, match="past 2"):
        made.page(None, routable=False, after=2**63, limit=1)
    with pytest.raises(QuestionError, match="up to place 100000"):
        made.best("bitcoin", "", routable=False, after=10**30, limit=1)


def test_stored_listings__of_a_block_that_is_replaced_meanwhile__ask_to_be_asked_again(writer, tried, monkeypatch):
    def replaced(*_):
        raise UnknownBlockError("The index holds no block with this hash")

    monkeypatch.setattr(listings, "experience_as_of", replaced)
    with pytest.raises(ForkError, match="was replaced while it was read: ask again"):
        StoredListings(writer.store, None).one(1)


def test_board__after_a_reorg__reads_again_only_what_the_replaced_blocks_changed(writer, tried, monkeypatch):
    kept = Directory(writer.store)
    live = LiveListings(kept)
    fork = tried.head
    live.one(1)
    untouched = live.one(2).value[1]
    for number in (1, 2):
        tried.append(attested(number, tool=f"gone-{number}", need="data:crypto"), listed(2 + number, 1))
        load(writer, tried, tried.head)
        live.one(1)
    tried.rewind(fork)
    tried.append(attested(2, tool="kept", need="data:weather"))
    replace(writer, tried, fork)
    monkeypatch.setattr(Directory, "_read_all", None)
    assert runs(live.one(1).value) == runs(StoredListings(writer.store).one(1).value)
    assert [live.one(number).value for number in (3, 4)] == [None, None]
    assert live.one(2).value[1] == untouched
    assert [view.service_id for view, _ in live.page(None, routable=False, after=0, limit=9).value.items] == [1, 2]


@pytest.mark.parametrize(("name", "most"), [("_STEPS_KEPT", 1), ("_MOST_UNDONE", 0)])
def test_board__after_a_reorg_that_took_back_too_much__is_read_anew(writer, tried, monkeypatch, name, most):
    monkeypatch.setattr(directory, name, most)
    live, fork = LiveListings(Directory(writer.store)), tried.head
    live.one(1)
    tried.append(attested(1, tool="gone", need="data:crypto"))
    load(writer, tried, tried.head)
    live.one(1)
    tried.rewind(fork)
    tried.append()
    replace(writer, tried, fork)
    assert runs(live.one(1).value) == runs(StoredListings(writer.store).one(1).value)


def test_board__while_another_thread_reads_everything__waits_for_nobody(writer, tried, monkeypatch):
    made, began, go_on, fill = Directory(writer.store), Event(), Event(), directory._fill

    def slow(*given):
        began.set()
        assert go_on.wait(30)
        fill(*given)

    def read():
        with made.board() as (as_of, _):
            return as_of.block

    monkeypatch.setattr(directory, "_fill", slow)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(read)
        assert began.wait(30)
        with pytest.raises(StoreUnavailableError, match="is being read for the first time: ask again"):
            read()
        go_on.set()
        assert first.result() == read() == tried.head
        began.clear()
        go_on.clear()
        forget_steps(made)
        again = threads.submit(read)
        assert began.wait(30)
        assert read() == tried.head
        go_on.set()
        assert again.result() == tried.head


def forget_steps(made):
    """Let no step stand, as after a rebuild by another version of the rules."""
    made._taken = [dataclasses.replace(one, mark=dataclasses.replace(one.mark, digest="0x")) for one in made._taken]


def replace(writer, chain, ancestor):
    """Index the blocks above an ancestor in the place of those that were."""
    found = Source(Node(chain), writer.deployment).fetch(ancestor + 1, chain.head)
    writer.replace_from(ancestor, found.headers, found.logs, None)
