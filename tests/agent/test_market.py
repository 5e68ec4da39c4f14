"""What an agent may choose from: by its index, by the chain, and which of them it asks."""

import pytest

from counterfoil.agent import market as module
from counterfoil.agent.market import ChainMarket, Found, IndexMarket, Markets
from counterfoil.agent.memory import Memory
from indexer.errors import UserError
from indexer.query import open_store
from indexer.service import index_run
from tests.agent.test_memory import lesson
from tests.support.chain import CATEGORY
from tests.support.market import market, run

SEARCH = "mcp:web-search"


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Service 1 was tried for `bitcoin price`; nobody tried 2 and 3."""
    with market(tmp_path_factory.mktemp("market")) as built:
        built.node("olga", price=100)
        built.node("dora", price=120, up=False)
        built.node("sven", price=300, up=False, category=SEARCH)
        run(
            built.desk("alice", None), category=CATEGORY, need="data:crypto", task="bitcoin price", input={},
            service_id=1,
        )  # fmt: skip
        index_run(built.settings)
        yield built


@pytest.fixture
def index(scene, monkeypatch):
    """The index, at the chain's head."""
    monkeypatch.setattr(module, "INDEX_POLL_SECONDS", 0)
    index_run(scene.settings)
    with open_store(scene.settings.database_url()) as store:
        yield IndexMarket(store, scene.world.chain)


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "memory.sqlite")


@pytest.fixture
def chain(scene, memory):
    return ChainMarket(scene.world.chain, memory)


@pytest.fixture
def restored(scene):
    """The chain is as it was once the test is over."""
    before = scene.world.rpc("evm_snapshot")
    yield
    scene.world.rpc("evm_revert", before)


# --- whom to ask


def test_now__with_an_index_at_the_head__is_the_index(index, chain):
    assert Markets(index, chain).now() == (index, "")


def test_now__without_an_index__is_the_chain(chain):
    assert Markets(None, chain).now() == (chain, "there is no index")


@pytest.mark.usefixtures("restored")
def test_now__with_an_index_that_is_behind__is_the_chain_from_one_block_too_many(scene, index, chain):
    at = scene.world.chain.head().number
    scene.world.rpc("anvil_mine", hex(module.MOST_BEHIND))
    assert Markets(index, chain).now() == (index, "")
    scene.world.rpc("anvil_mine", "0x1")
    assert Markets(index, chain).now() == (chain, f"the index is at block {at} and the chain at {at + 33}")


def test_now__with_an_index_on_another_fork__is_the_chain_until_the_index_follows(scene, index, chain, monkeypatch):
    monkeypatch.setattr(module, "INDEX_POLLS", 2)
    scene.world.rpc("anvil_mine", "0x3")
    index_run(scene.settings)
    scene.world.rpc("anvil_reorg", 2, [])
    assert Markets(index, chain).now() == (chain, "the index does not follow this chain")
    index_run(scene.settings)
    assert Markets(index, chain).now() == (index, "")


def test_now__with_an_index_that_catches_up_after_a_reorg__waits_for_it(scene, index, chain, monkeypatch):
    scene.world.rpc("anvil_mine", "0x3")
    index_run(scene.settings)
    scene.world.rpc("anvil_reorg", 2, [])
    monkeypatch.setattr(module.time, "sleep", lambda _: index_run(scene.settings))
    assert Markets(index, chain).now() == (index, "")


def test_now__with_an_index_that_cannot_be_asked__is_the_chain(chain):
    class Broken:
        def why_not(self):
            raise UserError("broken on purpose")

    assert Markets(Broken(), chain).now() == (chain, "the index cannot be asked: UserError")


# --- what they say


def test_snapshot__by_index_and_by_chain__are_the_same(scene, index, chain):
    head = scene.world.chain.head()
    for category, ids in ((CATEGORY, [1, 2]), (SEARCH, [3]), ("data:weather", [])):
        by_index, by_chain = index.snapshot(category), chain.snapshot(category)
        assert [one.service_id for one in by_chain.candidates] == ids
        assert list(by_index.candidates) == list(by_chain.candidates)
        assert by_index.as_of.hash == by_chain.as_of.hash == head.hash


def test_place__by_index_and_by_chain__are_the_same(scene, index, chain):
    head = scene.world.chain.head().number
    for service_id, node_id, operator in ((1, 1, "olga"), (3, 3, "sven")):
        by_index, by_chain = index.place(service_id, head), chain.place(service_id, head)
        assert by_index == by_chain
        assert (by_chain.node_id, by_chain.operator) == (node_id, scene.world.by(operator).address.lower())
        assert by_chain.endpoint == scene.world.registry.node(node_id).endpoint
    assert (index.place(99, head), chain.place(99, head)) == (None, None)


def test_best__of_the_index__is_what_was_tried_for_it_and_nothing_else(index):
    (found,) = index.best("bitcoin price", "data:crypto")
    assert (found.service_id, found.category) == (1, CATEGORY)
    assert found.sentence.startswith("Tested for bitcoin price: 1 run · 100% ok ·")
    assert [one.service_id for one in index.best("", "data:crypto")] == [1]
    assert index.best("translate a poem", "text:poetry") == []


def test_best__of_the_chain__is_what_own_runs_learned(chain, memory):
    memory.learn(lesson(1, service_id=7))
    memory.learn(lesson(2, service_id=8, worked=False, failures=2, cost=0, judge_score=5))
    assert chain.best("bitcoin price", "data:crypto") == [
        Found(7, "data:crypto-price", "Tested for bitcoin price: 80/100 over 1 run · 100% ok · 500 ms"),
        Found(8, "data:crypto-price", "Tested for bitcoin price: 5/100 over 1 run · 0% ok"),
    ]
    assert chain.best("translate a poem", "text:poetry") == []


def test_best__of_the_chain__gives_a_few_places_at_most(chain, memory):
    for number in range(1, 9):
        memory.learn(lesson(number, service_id=number))
    assert len(chain.best("bitcoin price", "")) == module.PLACES


def test_category_of__a_service__is_known_to_the_index_and_from_own_runs(index, chain, memory):
    memory.learn(lesson(1, service_id=2, category=SEARCH))
    assert [index.category_of(number) for number in (1, 3, 99)] == [CATEGORY, SEARCH, None]
    assert [chain.category_of(number) for number in (1, 2)] == [None, SEARCH]


def test_median__of_a_category__is_that_of_what_worked(index, chain, memory):
    for number, latency_ms in enumerate((500, 100, 300)):
        memory.learn(lesson(number, latency_ms=latency_ms))
    memory.learn(lesson(9, latency_ms=9000, worked=False))
    assert (chain.median("data:crypto-price"), chain.median("data:weather")) == (300, None)
    assert index.median(CATEGORY) >= 0
    assert index.median(SEARCH) is None
