"""Jobs on a real chain, with real nodes and an index that follows."""

import time
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from counterfoil.agent.notes import ToolNote
from counterfoil.agent.runner import Agent, Job
from counterfoil.chain.errors import ChainError
from counterfoil.receipts import ReceiptError
from indexer import query
from indexer.query import open_store
from indexer.service import index_run
from tests.support.market import broken, market, serving


def job(**changes):
    fields = {"category": "data:crypto-price", "bodies": (b"a", b"b"), "need": "data:crypto", "task": "t", "tool": "x"}
    return Job(**(fields | changes))


@pytest.fixture
def scene(tmp_path):
    with market(tmp_path) as built:
        yield built


def test_run__with_one_good_node__opens_calls_settles_rates_and_attests(scene):
    service_id = scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow())
    record = Agent(desk).run(job())
    assert record.outputs == (b'{"echo": "a"}', b'{"echo": "b"}')
    (attempt,) = record.attempts
    assert (attempt.service_id, attempt.attempt, attempt.paid, attempt.worked) == (service_id, 0, 200, True)
    assert desk.manager.session(attempt.session_id).status == 3
    assert desk.reputation.score_of(attempt.session_id) == attempt.rating.score == 100
    receipt = desk.receipts.load(attempt.decision)
    assert (receipt.choice, receipt.previous) == (service_id, None)
    attested = scene.world.chain.web3.eth.get_logs(
        {"address": desk.experience.contract.address, "fromBlock": 0, "topics": [None, attempt.session_id]}
    )
    assert len(attested) == 1


def test_run__with_a_note_about_the_tool__signs_what_it_says(scene):
    class Notes:
        def find(self, session_id, tool):
            return ToolNote(session_id=session_id, tool=tool, task="bitcoin spot price", note="fast")

    scene.node("olga", price=100)
    store = scene.follow()
    desk = replace(scene.desk("alice", store), notes=Notes())
    (attempt,) = Agent(desk).run(job()).attempts
    index_run_to(scene, store)
    (found,) = query.experience_of(store, session_id=attempt.session_id).value.items
    assert (found.fact.need, found.fact.task, found.fact.note) == ("data:crypto", "bitcoin spot price", "fast")


def index_run_to(scene, store):
    """Wait until the index that follows is at the chain's head."""
    deadline = time.monotonic() + 20
    while query.as_of(store).block < scene.world.chain.head().number:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_run__twice__links_the_second_receipt_to_the_first_and_spends_credit(scene):
    scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow())
    agent = Agent(desk)
    first, second = agent.run(job()), agent.run(job(bodies=(b"a", b"b", b"c")))
    assert desk.receipts.load(second.attempts[0].decision).previous == first.attempts[0].decision
    assert desk.manager.draws(desk.address) == 2


def test_run__with_a_node_that_is_down__opens_with_the_next_of_the_same_draw(scene):
    down = scene.node("dora", stake=500_000_000, up=False)
    good = scene.node("olga", stake=1_000_000)
    desk = scene.desk("alice", scene.follow())
    agent = Agent(desk)
    records = [agent.run(job()) for _ in range(6)]
    skipping = [record for record in records if record.skipped]
    assert skipping, "the node that is down holds nearly all of the weight"
    for record in skipping:
        (attempt,) = record.attempts
        assert (attempt.service_id, attempt.attempt) == (good, 1)
        receipt = desk.receipts.load(attempt.decision)
        assert receipt.order == (down, good)
        assert receipt.skipped[0].service_id == down
        assert receipt.skipped[0].reason == "node not reached: the connection failed"


def test_run__with_a_node_that_fails_after_its_session_was_opened__follows_with_the_next_attempt(scene):
    bad = scene.node("ben", stake=500_000_000, upstream=broken)
    good = scene.node("olga", stake=1_000_000)
    desk = scene.desk("alice", scene.follow())
    agent = Agent(desk)
    record = next(r for r in (agent.run(job()) for _ in range(20)) if len(r.attempts) == 2)
    failed, worked = record.attempts
    assert (failed.service_id, failed.worked, failed.paid, failed.rating.score) == (bad, False, 0, 0)
    assert (worked.service_id, worked.worked, worked.attempt) == (good, True, 1)
    first, second = desk.receipts.load(failed.decision), desk.receipts.load(worked.decision)
    assert (first.draw_seed, first.snapshot_block) == (second.draw_seed, second.snapshot_block)
    assert second.skipped[0].reason == f"session {failed.session_id[:10]} failed: the node answered 502 upstream_failed"
    assert desk.manager.active_sessions(1) == 0


def test_run__with_a_pin__serves_by_it_whatever_the_guard_says(scene):
    scene.node("olga", price=100)
    dear = scene.node("dora", price=10_000)
    record = Agent(scene.desk("alice", scene.follow())).run(job(pinned=dear))
    assert [attempt.service_id for attempt in record.attempts] == [dear]


def test_run__with_a_session_that_a_reorg_replaced__draws_anew_and_blames_nobody(scene):
    scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow())
    scene.world.rpc("anvil_mine", "0x2")
    opened = []

    def replace_the_first(session_id):
        opened.append(session_id)
        if len(opened) == 1:
            scene.world.rpc("anvil_reorg", 3, [])

    record = Agent(desk, opened=replace_the_first).run(job())
    assert len(set(opened)) == 2
    assert [attempt.session_id for attempt in record.attempts] == opened[1:]
    assert desk.manager.session(opened[0]).status == 0
    assert desk.reputation.ratings(1).rating_count == 1


def test_run__with_a_node_that_says_it_settled_and_did_not__closes_the_session_itself(scene):
    async def fail(_):
        return JSONResponse({}, status_code=500)

    async def lie(_):
        return JSONResponse({})

    routes = [Route("/call", fail, methods=["POST"]), Route("/settle", lie, methods=["POST"]), Route("/health", lie)]
    scene.node("liam", price=100, up=False)
    with serving(Starlette(routes=routes)) as url:
        scene.world.by("liam").send(scene.world.registry.set_endpoint(1, url))
        desk = scene.desk("alice", scene.follow())
        (attempt,) = Agent(desk).run(job()).attempts
    assert (attempt.worked, attempt.paid) == (False, 0)
    session = desk.manager.session(attempt.session_id)
    assert session.status == 2
    assert session.closes_at > 0


def test_run__with_a_budget_that_is_spent__opens_nothing(scene):
    scene.node("olga")
    desk = scene.desk("alice", scene.follow())
    record = Agent(desk, may_open=lambda: False).run(job())
    assert (record.attempts, record.outputs) == ((), ())
    assert desk.manager.draws(desk.address) == 0


def test_run__in_an_empty_category__says_so(scene):
    scene.node("olga")
    with pytest.raises(ReceiptError):
        Agent(scene.desk("alice", scene.follow())).run(job(category="llm:completion"))


def test_run__with_an_index_of_another_fork__says_that_it_does_not_follow(scene, monkeypatch):
    scene.node("olga")
    index_run(scene.settings)
    scene.world.rpc("anvil_reorg", 1, [])
    monkeypatch.setattr("counterfoil.agent.runner.INDEX_POLLS", 1)
    monkeypatch.setattr("counterfoil.agent.runner.INDEX_POLL_SECONDS", 0)
    with (
        open_store(scene.settings.database_url()) as store,
        pytest.raises(ChainError, match="does not follow this chain"),
    ):
        Agent(scene.desk("alice", store)).run(job())


def test_job__without_calls__is_an_error():
    with pytest.raises(ValueError, match="at least one call"):
        job(bodies=())
