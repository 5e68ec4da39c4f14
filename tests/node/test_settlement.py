"""When a node settles by itself, what a reorg does to it, and what happens to a settlement that the chain refuses."""

import pytest

from counterfoil.chain.contracts import Choice, Opening
from counterfoil.node.book import Stage
from counterfoil.node.wire import voucher_headers
from counterfoil.receipts import digest
from tests.support.caller import Caller, error, until


def record(scene, caller):
    (node,) = (node for node in scene.nodes.values() if node.node_id == caller.node_id)
    return node.book.record(caller.session_id)


def settled(caller):
    return until(lambda: caller.state().status == 3) and (caller.state().paid, caller.state().calls)


def later(world, seconds):
    world.rpc("evm_increaseTime", seconds)
    world.rpc("evm_mine")


def metric(scene, name, operator="olga"):
    lines = scene.nodes[operator].metrics.text().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith(f"counterfoil_node_{name} "))


# --- asked by the client


def test_settle__after_two_calls__pays_the_operator_and_refunds_the_client(caller):
    world = caller.world
    before = world.manager.credit_of(world.by("olga").address), world.manager.credit_of(world.by("alice").address)
    assert caller.call(1).status_code == caller.call(2).status_code == 200
    done = caller.settle(caller.price * 2, 2)
    assert done.json() == {"session_id": caller.session_id, "paid": str(2 * caller.price), "calls": 2}
    after = world.manager.credit_of(world.by("olga").address), world.manager.credit_of(world.by("alice").address)
    assert (after[0] - before[0], after[1] - before[1]) == (2 * caller.price, 8 * caller.price)
    assert (caller.state().status, caller.state().paid, caller.state().calls) == (3, 2 * caller.price, 2)


def test_settle__asked_twice__says_the_same(caller):
    caller.call(1)
    assert caller.settle().json() == caller.settle(caller.price, 1).json()


def test_settle__of_a_session_without_a_call__frees_the_nodes_capacity(caller):
    before = caller.world.manager.active_sessions(caller.node_id)
    assert caller.settle().json()["paid"] == "0"
    assert caller.world.manager.active_sessions(caller.node_id) == before - 1


def test_settle__asked_by_a_stranger__ends_nothing(caller):
    assert error(caller.settle(signer="mallory")) == (402, "bad_signature")
    caller.call(1)
    assert error(caller.settle(signer="mallory")) == (402, "bad_signature")
    assert caller.state().status == 1


def test_settle__of_no_session_or_another_nodes__is_refused(caller, scene):
    assert error(caller.settle(session_id="0x" + "00" * 32)) == (409, "unknown_session")
    other = Caller(scene.world, scene.node("nora"))
    assert error(caller.settle(session_id=other.session_id)) == (409, "not_ours")


def test_call__of_a_node_that_was_handed_over__is_refused_since_nobody_here_could_settle_it(scene):
    service_id = scene.node("hana")
    world = scene.world
    node_id = world.registry.service(service_id).node_id
    world.by("hana").send(world.registry.transfer_node(node_id, world.by("ines").address))
    world.by("ines").send(world.registry.accept_node(node_id))
    caller = Caller(scene.world, service_id)
    assert error(caller.call(1)) == (409, "not_ours")
    ready = until(lambda: (answer := caller.send("/ready", {}, b"", "GET")).status_code == 503 and answer.json())
    ines = world.by("ines").address
    assert ready["reasons"][0].startswith(f"Node {node_id} is run by {ines}, and this key is ")


# --- by itself


def test_watch__of_a_session_that_its_client_closes__pays_it_before_it_ends_at_zero(caller):
    assert caller.call(1).status_code == caller.call(2).status_code == 200
    caller.close()
    assert settled(caller) == (200, 2)


def test_watch__of_a_session_without_a_call_that_its_client_closes__settles_it_at_zero(caller):
    caller.close()
    assert settled(caller) == (0, 0)


def test_watch__of_a_session_that_nears_its_end__settles_it_within_the_margin_and_no_earlier(caller, scene):
    caller.call(1)
    idle = Caller(scene.world, scene.service_id, "bob")
    later(caller.world, 3600 - 300 - 60)
    until(lambda: metric(scene, "head_block") == caller.world.chain.head().number)
    assert caller.state().status == 1
    later(caller.world, 60)
    assert settled(caller) == (100, 1)
    assert idle.state().status == 1
    later(caller.world, 300)
    assert settled(idle) == (0, 0)


def test_watch__above_the_limit__settles_the_largest_until_it_is_below(scene, up):
    service_id = scene.node("lara", upstream=up.url, node_settle_above=450)
    small, large, new = (Caller(scene.world, service_id, name) for name in ("alice", "bob", "carl"))
    small.call(1)
    assert [large.call(number).status_code for number in (1, 2, 3)] == [200, 200, 200]
    until(lambda: metric(scene, "unsettled", "lara") == 400)
    assert small.state().status == large.state().status == 1
    new.call(1)
    assert settled(large) == (300, 3)
    until(lambda: metric(scene, "unsettled", "lara") == 200)
    assert small.state().status == new.state().status == 1


def test_watch__of_a_book_that_was_lost__finds_the_sessions_of_the_node_on_the_chain(scene, up):
    service_id = scene.node("ruth", up=False)
    callers = [Caller(scene.world, service_id, name, "nowhere") for name in ("alice", "bob")]
    node_id = callers[0].node_id
    callers[0].close()
    scene.serve("ruth", node_id, node_upstreams=up.url)
    assert settled(callers[0]) == (0, 0)
    assert until(lambda: record(scene, callers[1])).stage is Stage.OPEN
    assert scene.world.manager.active_sessions(node_id) == 1


def test_watch__of_a_session_that_somebody_else_ended__counts_what_was_lost(scene, up):
    service_id = scene.node("lotte", upstream=up.url, node_watch_seconds=60)
    caller = Caller(scene.world, service_id)
    caller.call(1)
    caller.close()
    later(caller.world, 61)
    caller.world.by("bob").send(caller.world.manager.finish_close(caller.session_id))
    scene.nodes["lotte"].watch.wake()
    until(lambda: record(scene, caller).is_settled)
    assert 'counterfoil_node_settlements_total{outcome="lost"} 1.0' in scene.nodes["lotte"].metrics.text().decode()


# --- reorgs


def test_watch__of_a_settlement_that_a_reorg_undid__sends_it_again(scene, caller):
    caller.call(1)
    scene.world.rpc("anvil_mine", "0x3")
    caller.settle()
    scene.world.rpc("anvil_reorg", 1, [])
    assert settled(caller) == (100, 1)
    assert error(caller.call(2)) == (409, "not_open")


def test_watch__of_a_settlement_whose_block_is_final__lets_go_of_it(scene, caller):
    caller.call(1)
    caller.settle()
    assert record(scene, caller).stage is Stage.SETTLED
    scene.world.rpc("anvil_mine", "0x60")
    until(lambda: record(scene, caller).stage is Stage.FINAL)
    assert caller.call(1).headers["counterfoil-replayed"] == "true"


def test_watch__of_a_session_that_a_reorg_took_away_for_good__keeps_its_voucher_until_it_cannot_come_back(
    scene, caller
):
    caller.call(1)
    scene.world.rpc("anvil_reorg", 1, [])
    scene.world.rpc("anvil_mine", hex(256))
    until(lambda: metric(scene, "head_block") == caller.world.chain.head().number)
    assert record(scene, caller).payable == caller.voucher(100, 1)
    scene.world.rpc("anvil_mine", hex(80))
    until(lambda: record(scene, caller) is None)


def reopen(caller, deposit):
    """The same draw again after its session was taken away: the session has its id again."""
    request = caller.receipt.request
    choice = Choice(
        policy=int(request.policy), nonce=request.nonce, attempt=0, snapshot_block=caller.receipt.snapshot_block,
        snapshot_hash=caller.receipt.snapshot_hash, price_cap=None, decision=digest(caller.receipt),
    )  # fmt: skip
    opening = caller.world.manager.open(Opening(caller.receipt.choice, deposit, caller.price, 3600, choice))
    again = caller.world.write(caller.client, opening, "SessionOpened")["session_id"].hex()
    assert "0x" + again == caller.session_id


def test_watch__of_a_session_that_exists_again_after_a_reorg__settles_its_voucher(scene, caller):
    caller.call(1)
    scene.world.rpc("anvil_reorg", 1, [])
    assert error(caller.call(2)) == (409, "unknown_session")
    reopen(caller, 1000)
    assert caller.call(2).status_code == 200
    caller.close()
    assert settled(caller) == (200, 2)


# --- refused


def test_watch__of_a_settlement_that_the_chain_refuses__is_stuck_after_a_few_tries_and_shown(scene, up):
    caller = Caller(scene.world, scene.node("stina", upstream=up.url, node_watch_seconds=0.02))
    assert caller.send("/call", voucher_headers(caller.voucher(900, 1))).status_code == 200
    scene.world.rpc("anvil_reorg", 1, [])
    reopen(caller, 800)
    caller.close()
    until(lambda: metric(scene, "stuck_sessions", "stina") == 1)
    ready = caller.send("/ready", {}, b"", "GET")
    assert (ready.status_code, ready.json()["stuck_sessions"]) == (200, 1)
    (stuck,) = ready.json()["stuck"]
    assert stuck["session_id"] == caller.session_id
    assert "voucher above deposit" in stuck["reason"]
    tries = scene.nodes["stina"].settler._troubles[caller.session_id]
    assert (tries.refusals, tries.attempts) == (5, 5)
    later(caller.world, 61)
    caller.world.by("bob").send(caller.world.manager.finish_close(caller.session_id))
    until(lambda: metric(scene, "stuck_sessions", "stina") == 0)


def test_watch__of_an_rpc_that_is_gone__says_so_and_goes_on_when_it_is_back(scene, caller, monkeypatch):
    node = scene.nodes["olga"]
    caller.call(1)
    provider = node.watch._reader._chain.provider
    right = provider.endpoint
    provider.endpoint = "http://127.0.0.1:9"
    answer = until(lambda: (answer := caller.send("/ready", {}, b"", "GET")).status_code == 503 and answer)
    assert "does not answer" in answer.json()["reasons"][0]
    assert error(caller.call(2)) == error(caller.settle()) == (503, "chain_unavailable")
    assert caller.call(1).headers["counterfoil-replayed"] == "true"
    provider.endpoint = right
    assert settled(caller) == (100, 1)
    until(lambda: caller.send("/ready", {}, b"", "GET").status_code == 200)


@pytest.mark.parametrize("path", ["/health", "/ready", "/heartbeat", "/metrics"])
def test_server__asked_about_itself__answers(caller, path):
    assert until(lambda: caller.send(path, {}, b"", "GET").status_code == 200)
    assert caller.send(path, {}, b"", "POST").status_code == 405


# --- what time it is


def test_settle_due__by_a_machine_whose_date_is_wrong__goes_by_the_chain(caller, scene, monkeypatch):
    (node,) = (node for node in scene.nodes.values() if node.node_id == caller.node_id)
    assert caller.call(1).status_code == 200
    monkeypatch.setattr("time.time", lambda: 2**32)
    node.watch._settler.settle_due(scene.world.chain.head())
    assert caller.state().status == 1


def test_settle_due__on_a_chain_that_stands_still__counts_the_seconds_on(caller, scene, monkeypatch):
    (node,) = (node for node in scene.nodes.values() if node.node_id == caller.node_id)
    assert caller.call(1).status_code == 200
    settler, head = node.watch._settler, scene.world.chain.head()
    settler.settle_due(head)
    assert caller.state().status == 1
    since = settler._clock()
    monkeypatch.setattr(settler, "_clock", lambda: since + 3600)
    settler.settle_due(head)
    assert settled(caller) == (caller.price, 1)
