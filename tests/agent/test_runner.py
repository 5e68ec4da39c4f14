"""Jobs on a real chain, with real nodes and an index that follows."""

from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from counterfoil.agent.notes import ToolNote
from counterfoil.agent.record import record_of
from counterfoil.agent.resuming import conclude_closed
from counterfoil.agent.runner import Runner
from counterfoil.agent.workflow import read
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.chain.contracts import Write
from counterfoil.chain.errors import ChainError
from indexer import query
from tests.support.caller import until
from tests.support.market import broken, market, serving
from tests.support.market import run as run_step

STEP = {
    "category": "data:crypto-price", "need": "data:crypto", "task": "t", "tool": "x", "input": {"symbol": "BTC"},
}  # fmt: skip
NOWHERE = "0x000000000000000000000000000000000000dEaD"
ECHO = {"echo": '{"symbol":"BTC"}'}


@pytest.fixture
def scene(tmp_path):
    with market(tmp_path) as built:
        yield built


def run(desk, **changes):
    return run_step(desk, **(STEP | changes))


def sessions(record):
    return [session for step in record["steps"] for session in step["sessions"]]


def the_session(record):
    (session,) = sessions(record)
    return session


def test_run__with_one_good_node__opens_calls_settles_rates_and_attests(scene):
    service_id = scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow())
    record = run(desk, calls=2)
    assert (record["status"], record["paid"]) == ("done", "200")
    assert record["steps"][0]["output"] == [ECHO, ECHO]
    session = the_session(record)
    assert (session["service_id"], session["attempt"], session["paid"], session["state"]) == (
        service_id,
        0,
        "200",
        "done",
    )
    assert desk.manager.session(session["session_id"]).status == 3
    assert desk.reputation.score_of(session["session_id"]) == session["score"] == 100
    receipt = desk.receipts.load(session["receipt"])
    assert (receipt.choice, receipt.previous) == (service_id, None)
    attested = scene.world.chain.web3.eth.get_logs(
        {"address": desk.experience.contract.address, "fromBlock": 0, "topics": [None, session["session_id"]]}
    )
    assert len(attested) == 1
    assert desk.spending.spent(run_id=record["run_id"]).total == 200


def test_run__with_a_note_about_the_tool__signs_what_it_says(scene):
    class Notes:
        def find(self, session_id, tool):
            return ToolNote(session_id=session_id, tool=tool, task="bitcoin spot price", note="fast")

    scene.node("olga", price=100)
    store = scene.follow()
    session = the_session(run(replace(scene.desk("alice", store), notes=Notes())))
    index_run_to(scene, store)
    (found,) = query.experience_of(store, session_id=session["session_id"]).value.items
    assert (found.fact.need, found.fact.task, found.fact.note) == ("data:crypto", "bitcoin spot price", "fast")


def index_run_to(scene, store):
    """Wait until the index that follows is at the chain's head."""
    until(lambda: query.as_of(store).block >= scene.world.chain.head().number)


def test_run__twice__links_the_second_receipt_to_the_first_and_spends_credit(scene):
    scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow())
    first, second = the_session(run(desk, calls=2)), the_session(run(desk, calls=3))
    assert desk.receipts.load(second["receipt"]).previous == first["receipt"]
    assert desk.manager.draws(desk.address) == 2


def test_run__with_a_node_that_is_down__opens_with_the_next_of_the_same_draw(scene):
    down = scene.node("dora", stake=500_000_000, up=False)
    good = scene.node("olga", stake=1_000_000)
    desk = scene.desk("alice", scene.follow())
    skipping = [s for s in (the_session(run(desk)) for _ in range(6)) if s["attempt"]]
    assert skipping, "the node that is down holds nearly all of the weight"
    for session in skipping:
        assert (session["service_id"], session["attempt"]) == (good, 1)
        receipt = desk.receipts.load(session["receipt"])
        assert receipt.order == (down, good)
        assert receipt.skipped[0].service_id == down
        assert receipt.skipped[0].reason == "node not reached: the connection failed"


def test_run__with_a_node_that_fails_after_its_session_was_opened__follows_with_the_next_attempt(scene):
    bad = scene.node("ben", stake=500_000_000, upstream=broken)
    good = scene.node("olga", stake=1_000_000)
    desk = scene.desk("alice", scene.follow())
    records = (run(desk) for _ in range(20))
    failed, worked = sessions(next(record for record in records if len(sessions(record)) == 2))
    assert (failed["service_id"], failed["paid"], failed["score"]) == (bad, "0", 0)
    assert (worked["service_id"], worked["failure"], worked["attempt"]) == (good, "", 1)
    first, second = desk.receipts.load(failed["receipt"]), desk.receipts.load(worked["receipt"])
    assert (first.draw_seed, first.snapshot_block) == (second.draw_seed, second.snapshot_block)
    assert (
        second.skipped[0].reason == f"session {failed['session_id'][:10]} failed: the node answered 502 upstream_failed"
    )
    assert desk.manager.active_sessions(1) == 0


def test_run__with_a_pin__serves_by_it_whatever_the_guard_says(scene):
    scene.node("olga", price=100)
    dear = scene.node("dora", price=10_000)
    record = run(scene.desk("alice", scene.follow()), service_id=dear)
    assert [session["service_id"] for session in sessions(record)] == [dear]


def test_run__with_try_both__opens_two_of_one_draw_and_keeps_one_answer(scene):
    both = {scene.node("olga", price=100), scene.node("dora", price=100)}
    desk = scene.desk("alice", scene.follow())
    record = run(desk, try_both=True)
    first, second = sessions(record)
    assert {first["service_id"], second["service_id"]} == both
    assert (first["paid"], second["paid"], record["steps"][0]["output"]) == ("100", "100", ECHO)
    skipped = desk.receipts.load(second["receipt"]).skipped[0].reason
    assert skipped == f"session {first['session_id'][:10]} worked; the next of the order is tried too, to compare them"


def test_run__with_a_session_that_a_reorg_replaced__draws_anew_and_blames_nobody(scene):
    scene.node("olga", price=100)
    store = scene.follow()
    desk = scene.desk("alice", store)
    scene.world.rpc("anvil_mine", "0x2")
    index_run_to(scene, store)  # what is chosen on is replaced, too
    opened = []

    def replace_the_first(session_id):
        opened.append(session_id)
        if len(opened) == 1:
            scene.world.reorg(3)

    record = run(desk, runner=Runner(desk, opened=replace_the_first))
    assert len(set(opened)) == 2
    void, done = sessions(record)
    assert [void["session_id"], done["session_id"]] == opened
    assert (void["state"], void["paid"], done["state"]) == ("void", "0", "done")
    assert desk.manager.session(opened[0]).status == 0
    assert desk.reputation.ratings(1).rating_count == 1
    assert desk.spending.spent(run_id=record["run_id"]).total == 100


def test_run__with_a_node_that_says_it_settled_and_did_not__closes_the_session_itself_and_ends_it_later(scene):
    async def fail(_):
        return JSONResponse({}, status_code=500)

    async def lie(_):
        return JSONResponse({})

    routes = [Route("/call", fail, methods=["POST"]), Route("/settle", lie, methods=["POST"]), Route("/health", lie)]
    scene.node("liam", price=100, up=False)
    with serving(Starlette(routes=routes)) as url:
        scene.world.by("liam").send(scene.world.registry.set_endpoint(1, url))
        desk = scene.desk("alice", scene.follow())
        record = run(desk)
    session = the_session(record)
    assert (record["status"], session["state"], session["paid"]) == ("failed", "closing", "0")
    state = desk.manager.session(session["session_id"])
    assert state.status == 2
    assert conclude_closed(desk) == []
    scene.world.rpc("evm_increaseTime", 61)
    scene.world.rpc("evm_mine")
    assert conclude_closed(desk) == [session["session_id"]]
    assert desk.manager.session(session["session_id"]).status == 3
    assert desk.reputation.score_of(session["session_id"]) == 0
    assert conclude_closed(desk) == []
    assert desk.spending.spent(run_id=record["run_id"]).total == 0


def test_run__that_may_open_nothing__opens_nothing(scene):
    scene.node("olga")
    desk = scene.desk("alice", scene.follow())
    record = run(desk, runner=Runner(desk, may_open=lambda: False))
    assert (record["status"], record["reason"]) == ("failed", "step call: no session was opened")
    assert desk.manager.draws(desk.address) == 0


def test_run__in_an_empty_category__says_so(scene):
    scene.node("olga")
    record = run(scene.desk("alice", scene.follow()), category="data:weather")
    assert record["status"] == "failed"
    assert "there are no routable candidates" in record["reason"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"agent_max_per_call": 99}, "per call"),
        ({"agent_max_per_run": 199}, "run"),
        ({"agent_max_per_day": 199}, "day"),
        ({"agent_max_per_operator": 199}, "operator"),
    ],
)
def test_run__above_a_hard_cap__opens_nothing_and_names_the_cap(scene, settings, words):
    scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow(), **settings)
    record = run(desk, calls=2)
    assert (record["status"], sessions(record)) == ("failed", [])
    assert words in record["reason"]
    assert desk.manager.draws(desk.address) == 0
    assert desk.spending.spent(run_id=record["run_id"]).total == 0


def test_run__with_a_soft_cap_that_all_pass__opens_all_the_same_but_never_above_the_hard_one(scene):
    scene.node("olga", price=100)
    store = scene.follow()
    relaxed = run(scene.desk("alice", store, agent_max_per_call=100), max_price_per_call=50)
    refused = run(scene.desk("alice", store, agent_max_per_call=60), max_price_per_call=50)
    assert (relaxed["status"], refused["status"]) == ("done", "failed")


def test_run__of_steps_that_refer_to_each_other__hands_outputs_on(scene):
    scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow())
    text = b"""
name: chain
steps:
  - {id: one, category: "data:crypto-price", input: {symbol: BTC}}
  - {id: two, category: "data:crypto-price", input: "said ${one.echo}"}
"""
    workflows = WorkflowRunner(desk, Runner(desk), lambda _: None)
    record = record_of(desk.journal, workflows.go(workflows.start(read(text, "here"))))
    assert record["steps"][1]["output"] == {"echo": '"said {\\"symbol\\":\\"BTC\\"}"'}


def test_run__without_an_index__chooses_by_the_chain_and_its_receipt_says_so(scene):
    service_id = scene.node("olga", price=100)
    desk = scene.desk("alice", None)
    session = the_session(run(desk))
    assert session["service_id"] == service_id
    receipt = desk.receipts.load(session["receipt"])
    assert receipt.request.found_by == "candidates and endpoints by the chain, since there is no index"


def test_run__for_a_task_without_an_index__finds_it_in_own_memory(scene):
    scene.node("olga", price=100)
    desk = scene.desk("alice", None)
    run(desk)
    session = the_session(run(desk, category="", need="", task="t"))
    assert desk.receipts.load(session["receipt"]).request.found_by.startswith("by task 't' in own memory and the chain")


def test_run__for_a_task__finds_it_in_the_directory(scene):
    scene.node("olga", price=100)
    store = scene.follow()
    desk = scene.desk("alice", store)
    run(desk)
    index_run_to(scene, store)
    session = the_session(run(desk, category="", need="data:crypto", task="t"))
    found_by = desk.receipts.load(session["receipt"]).request.found_by
    assert found_by.startswith("by task 't' and data:crypto in the directory: service 1, Tested for t: 1 run")


def test_run__of_a_wallet_without_tokens__says_what_is_missing(scene):
    scene.node("olga", price=100)
    desk = scene.desk("alice", scene.follow())
    held = desk.token.balance_of(desk.address)
    desk.wallet.send(Write("Token.transfer", desk.token.contract.functions.transfer(NOWHERE, held - 30)))
    record = run(desk)
    assert f"holds 30 of the payment token {desk.token.address} and needs 100" in record["reason"]
    assert "send it 70 more" in record["reason"]


def test_run__of_a_wallet_without_gas__opens_rates_and_attests_by_its_relayer(scene):
    scene.node("olga", price=100)
    store = scene.follow()
    scene.desk("alice", store)
    scene.world.by("rita")
    scene.world.rpc("anvil_setBalance", scene.world.by("alice").address, "0x0")
    desk = scene.desk("alice", store, relayer="rita")
    session = the_session(run(desk))
    assert (session["state"], session["paid"], session["score"]) == ("done", "100", 100)
    assert desk.manager.session(session["session_id"]).client == desk.address
    with pytest.raises(ChainError, match="has no gas: send it some of the chain's coin"):
        scene.desk("alice", store).wallet.sender()
