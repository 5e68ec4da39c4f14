"""Several nodes: whom the loop asks, whom it sets aside, and when it gives up. Rows must be those of an honest node."""

import random
import re
import threading
from contextlib import suppress

import pytest

from indexer import providers
from indexer.errors import (
    BadAnswerError,
    HistoryPrunedError,
    LieError,
    NoHistoryError,
    RateLimitedError,
    ReorgTooDeepError,
    RetryableError,
    UnavailableError,
    WrongChainError,
)
from indexer.notices import ProviderChanged, Retried, Stepped
from indexer.providers import FIRST_ASIDE, LONGEST_ASIDE, SURE_OF_PRUNING, Provider, Providers
from indexer.ranges import RangeSize
from indexer.source import Source
from indexer.sync import SyncOptions, follow, run_once
from tests.indexer.conftest import QUICK, everything
from tests.indexer.model import Chain, Node
from tests.indexer.traffic import SMALL, assert_same_as_clean, busy_chain, grow

SHORTEST, LONGEST = 0.5, 8.0


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Asked:
    """A source of which only its identity is asked."""

    def check_identity(self):
        pass


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def told():
    return []


@pytest.fixture
def many(clock, told):
    def make(count):
        nodes = [Provider(f"http://node-{at}", Asked(), RangeSize(10, 10)) for at in range(count)]
        return nodes, Providers(nodes, pauses=(SHORTEST, LONGEST), tell=told.append, clock=clock)

    return make


# --- whom to ask


def test_failed__of_one_node__waits_longer_each_time_up_to_the_longest(many, clock):
    (only,), providers = many(1)
    waits = []
    for _ in range(7):
        waits.append(providers.failed(only, UnavailableError("gone")))
        clock.now += waits[-1]
        assert providers.pick() == (only, 0)
    assert waits == [0.5, 1, 2, 4, 8, 8, 8]
    providers.succeeded(only)
    assert providers.failed(only, UnavailableError("gone")) == SHORTEST


def test_failed__of_one_of_two__moves_on_without_a_wait_and_comes_back_in_turn(many, clock):
    (first, second), providers = many(2)
    assert providers.pick() == (first, 0)
    assert providers.failed(first, BadAnswerError("odd")) == 0
    assert providers.pick() == (second, 0)
    assert providers.failed(second, UnavailableError("gone")) == SHORTEST
    clock.now += SHORTEST
    assert providers.pick() == (first, 0)


def test_failed__with_a_wait_that_the_node_asked_for__asks_it_no_sooner(many, clock):
    (first, second), providers = many(2)
    slow = RateLimitedError("slow down")
    slow.wait = 40
    assert providers.failed(first, slow) == 0
    assert providers.failed(second, slow) == 40
    clock.now += 39.5
    assert providers.pick() == (first, 0.5)


def test_failed__with_a_lie__sets_the_node_aside_by_name_and_longer_each_time(many, clock, told):
    (liar, honest), providers = many(2)
    providers.failed(liar, LieError("The node left out logs."))
    assert told == [ProviderChanged("http://node-0", "The node left out logs.")]
    lengths = []
    for _ in range(9):
        begun = clock.now
        while providers.pick()[0] is honest:
            providers.move_on(honest)
            clock.now += 60
        lengths.append(clock.now - begun)
        assert told[-1] == ProviderChanged("http://node-0", None)
        providers.failed(liar, LieError("The node left out logs."))
    assert lengths == [min(LONGEST_ASIDE, FIRST_ASIDE * 2**turn) for turn in range(9)]


def test_pick__while_the_honest_one_fails_now_and_then__leaves_the_liar_aside(many, clock):
    (liar, honest), providers = many(2)
    providers.failed(liar, LieError("lied"))
    for _ in range(20):
        clock.now += providers.failed(honest, UnavailableError("gone"))
        assert providers.pick() == (honest, 0)
        providers.succeeded(honest)


def test_pick__where_every_other_node_fails_for_long__asks_the_liar_again(many, clock):
    (liar, dead), providers = many(2)
    providers.failed(liar, LieError("lied"))
    for _ in range(3):
        assert providers.pick()[0] is dead
        clock.now += 1
        providers.failed(dead, UnavailableError("gone"))
    assert providers.pick() == (liar, 0)


def test_failed__by_a_single_liar__says_that_there_is_no_other(many, told):
    (only,), providers = many(1)
    assert providers.failed(only, LieError("It lied.")) == SHORTEST
    assert providers.failed(only, LieError("It lied.")) == 2 * SHORTEST
    assert told == [ProviderChanged("http://node-0", "It lied. There is no other RPC address, so it is asked again.")]


def test_failed__where_every_node_is_of_another_chain__raises(many):
    (first, second), providers = many(2)
    providers.failed(first, WrongChainError("another chain"))
    with pytest.raises(WrongChainError):
        providers.failed(second, WrongChainError("another chain"))


def test_failed__where_a_node_lacks_history_time_and_again__names_the_remedy(many):
    (only,), providers = many(1)
    for _ in range(SURE_OF_PRUNING - 1):
        providers.failed(only, NoHistoryError("no block 5."))
    providers.failed(only, UnavailableError("gone"))
    for number in range(2 * SURE_OF_PRUNING):
        providers.failed(only, NoHistoryError(f"no block {number}."))
    for _ in range(SURE_OF_PRUNING - 1):
        providers.failed(only, NoHistoryError("no block 5."))
    with pytest.raises(HistoryPrunedError, match=r"no block 5.*whole history in COUNTERFOIL_RPC_URL.*copy of an index"):
        providers.failed(only, NoHistoryError("no block 5."))


# --- whole runs


@pytest.fixture
def chain():
    return busy_chain()


@pytest.fixture
def two(chain):
    first, second = Node(chain), Node(chain)
    first.where, second.where = "http://first", "http://second"
    return first, second


def leave_out(node):
    node.faults["eth_getLogs"] = lambda logs, _: [log for log in logs if log["blockNumber"] != "0x9"]


def forge_receipts(node):
    node.faults["eth_getBlockReceipts"] = lambda receipts, _: receipts[1:]


def add_foreign(node):
    node.faults["eth_getLogs"] = lambda logs, _: [*logs, logs[0] | {"address": "0x" + "99" * 20}]


def contradict(node):
    node.faults["eth_getLogs"] = lambda logs, _: [*logs, logs[0] | {"data": "0x"}]


LIARS = {
    "left out logs of block 9": leave_out,
    "receipts of block .* are not those whose root": forge_receipts,
    "gave logs of 0x99.* which was not asked for": add_foreign,
    "two different logs for one place": contradict,
}


@pytest.mark.parametrize("reason", LIARS)
def test_run_once__with_a_liar_first__sets_it_aside_by_name_and_takes_the_other(writer, two, chain, tmp_path, reason):
    liar, honest = two
    LIARS[reason](liar)
    told = []
    result = run_once(writer, two, options=SMALL, observer=told.append)
    assert_same_as_clean(writer, chain, tmp_path)
    (changed,) = [notice for notice in told if isinstance(notice, ProviderChanged)]
    assert changed.provider == "http://first"
    (notice,) = result.notices
    assert notice == f"http://first was set aside: {changed.set_aside}"
    assert re.search(reason, notice)
    asked = len(liar.calls)
    grow(chain, 3, start=300)
    run_once(writer, [honest], options=SMALL)
    assert len(liar.calls) == asked


def test_run_once__with_one_of_another_chain__takes_the_other_and_says_so(writer, two, chain, tmp_path):
    two[0].faults["eth_chainId"] = lambda *_: "0x5"
    result = run_once(writer, two, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)
    assert "http://first was set aside: The node is on chain 5" in result.notices[0]


def test_run_once__with_all_of_another_chain__stops_and_writes_nothing(writer, two):
    for node in two:
        node.faults["eth_chainId"] = lambda *_: "0x5"
    with pytest.raises(WrongChainError, match="on chain 5"):
        run_once(writer, two, options=SMALL)
    assert writer.cursor() is None


def test_run_once__with_one_dead__takes_the_other_without_a_pause(writer, two, chain, tmp_path):
    def die(*_):
        raise UnavailableError("no answer")

    two[0].faults["eth_chainId"] = die
    told = []
    options = SyncOptions(first_range=7, max_range=16, first_pause=100, longest_pause=100)
    run_once(writer, two, options=options, observer=told.append)
    assert_same_as_clean(writer, chain, tmp_path)
    assert [(type(notice.error), notice.seconds) for notice in told if isinstance(notice, Retried)] == [
        (UnavailableError, 0)
    ]


def test_run_once__with_all_dead__gives_up_after_the_attempts_of_each(writer, two):
    def die(*_):
        raise UnavailableError("no answer")

    for node in two:
        node.faults["eth_chainId"] = die
    with pytest.raises(UnavailableError):
        run_once(writer, two, options=SMALL)
    assert [len(node.asked("eth_chainId")) for node in two] == [SMALL.attempts] * 2


def test_run_once__with_a_pruned_node_first__takes_the_one_that_keeps_history(writer, two, chain, tmp_path):
    def pruned(*_):
        raise NoHistoryError("The node keeps no such block.")

    two[0].faults["eth_getLogs"] = pruned
    run_once(writer, two, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_only_pruned_nodes__names_the_remedy_and_writes_nothing(writer, two):
    def pruned(*_):
        raise NoHistoryError("The node keeps no such block.")

    for node in two:
        node.faults["eth_getLogs"] = pruned
    with pytest.raises(HistoryPrunedError, match="keeps the whole history"):
        run_once(writer, two, options=SMALL)
    assert writer.cursor() is None


def test_run_once__with_the_first_behind__goes_on_with_the_other(writer, chain, tmp_path):
    run_once(writer, Node(chain), options=SMALL)
    behind = Node(Chain())
    behind.chain.blocks = chain.blocks[:-6]
    grow(chain, 4, start=500)
    result = run_once(writer, [behind, Node(chain)], options=SMALL)
    assert not result.held
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_all_behind__holds(writer, chain):
    run_once(writer, Node(chain), options=SMALL)
    before = everything(writer.store)
    behind = []
    for blocks in (chain.blocks[:-6], chain.blocks[:-3]):
        behind.append(Node(Chain()))
        behind[-1].chain.blocks = blocks
    assert run_once(writer, behind, options=SMALL).held
    assert everything(writer.store) == before


def test_run_once__with_a_liar_that_fails_while_it_is_read_ahead__blames_the_liar_alone(writer, two, chain, tmp_path):
    """Its first range tells of the lie, and the next one, which is read meanwhile, is worse: nobody asks for it."""
    liar, _ = two

    def spoil(logs, params):
        if int(params[0]["fromBlock"], 16) > 7:
            raise LieError("The node says something else again.")
        return [*logs, logs[0] | {"address": "0x" + "99" * 20}]

    liar.faults["eth_getLogs"] = spoil
    result = run_once(writer, two, options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)
    assert [notice.split(" was ")[0] for notice in result.notices] == ["http://first"]


def test_follow__with_a_node_that_stands_still__asks_the_other(writer, chain):
    still, moving = Node(Chain()), Node(chain)
    still.chain.blocks = chain.blocks[:]
    stop = threading.Event()
    grow(chain, 3, start=500)
    options = SyncOptions(first_pause=0, poll_seconds=0.001, quiet_seconds=0.01)

    def observe(notice):
        if isinstance(notice, Stepped) and notice.cursor.number == chain.head:
            stop.set()

    assert follow(writer, [still, moving], stop=stop, options=options, observer=observe).block == chain.head


def test_run_once__with_a_dead_fork_below_a_final_block_first__takes_the_other(writer, chain, tmp_path):
    honest = Node(chain)
    honest.finality = 10
    run_once(writer, honest, options=SMALL)
    dead = Node(Chain())
    dead.chain.blocks = chain.blocks[:20]
    grow(dead.chain, 60, start=900)
    dead.where = "http://dead"
    result = run_once(writer, [dead, honest], options=SMALL)
    assert_same_as_clean(writer, chain, tmp_path)
    assert "http://dead was set aside: The chain was replaced" in result.notices[0]
    with pytest.raises(ReorgTooDeepError):
        run_once(writer, [dead], options=SMALL)


@pytest.mark.parametrize("seed", range(6))
def test_run_once__with_two_forks_behind_one_address__writes_only_what_is_on_one_of_them(writer, chain, tmp_path, seed):
    """Every answer comes from either node. Whatever is written is one of the two chains, never a mixture."""
    other = Chain()
    other.blocks = chain.blocks[:-5]
    grow(other, 7, start=700)
    chance = random.Random(seed)
    nodes = Node(chain), Node(other)
    both = Node(chain)
    both.call = lambda method, params: chance.choice(nodes).call(method, params)
    with suppress(RetryableError):
        run_once(writer, both, options=SMALL)
    cursor = writer.cursor()
    if cursor is None:
        assert not any(everything(writer.store).values())
        return
    hashes = [{block["hash"] for block in one.blocks} for one in (chain, other)]
    blocks = chain.blocks if cursor.hash in hashes[0] else other.blocks
    written = Chain()
    written.blocks = blocks[: cursor.number + 1]
    assert_same_as_clean(writer, written, tmp_path)


def test_run_once__with_two_addresses_at_one_host__tells_them_apart(writer, chain):
    nodes = [Node(chain), Node(chain)]
    for node in nodes:
        node.faults["eth_chainId"] = lambda *_: "0x5"
    told = []
    with pytest.raises(WrongChainError):
        run_once(writer, nodes, options=QUICK)
    run_once(writer, [*nodes, Node(chain)], options=QUICK, observer=told.append)
    names = [notice.provider for notice in told if isinstance(notice, ProviderChanged)]
    assert names == ["memory", "memory (number 2)"]


class Starting:
    """A reader that is not ready yet."""

    is_ready, is_starting = False, True


def test_fetch_all__while_a_reader_starts__reads_few_blocks_at_once_and_learns_nothing_from_them(chain):
    size = RangeSize(20, 40)
    provider = Provider("", Source(Node(chain), chain.deployment()), size, Starting(), 1)
    ranges = [len(fetched.headers) for fetched in provider.fetch_all(1, 35)]
    assert (ranges, size.blocks) == ([10, 10, 10, 5], 20)


def test_fetch_all__with_a_reader_that_nobody_started__reads_as_much_as_it_may(chain):
    reader = Starting()
    reader.is_starting = False
    provider = Provider("", Source(Node(chain), chain.deployment()), RangeSize(20, 20), reader, 1)
    assert [len(fetched.headers) for fetched in provider.fetch_all(1, 35)] == [20, 15]


def test_fetch_all__while_a_reader_never_gets_ready__reads_as_much_as_it_may_after_some_ranges(monkeypatch):
    monkeypatch.setattr(providers, "_RANGES_UNTIL_READY", 2)
    chain = busy_chain()
    provider = Provider("", Source(Node(chain), chain.deployment()), RangeSize(20, 20), Starting(), 1)
    assert [len(fetched.headers) for fetched in provider.fetch_all(1, 42)] == [10, 10, 20, 2]


def test_fetch_all__that_fails_while_a_reader_starts__learns_nothing_from_that():
    def fail(*_):
        raise UnavailableError("The node is gone; waiting.")

    chain, size = busy_chain(), RangeSize(20, 40)
    source = Source(Node(chain), chain.deployment())
    source.fetch = fail
    for starting, blocks in ((True, 20), (False, 10)):
        reader = Starting()
        reader.is_starting = starting
        with suppress(UnavailableError):
            next(Provider("", source, size, reader, 1).fetch_all(1, 42))
        assert size.blocks == blocks
