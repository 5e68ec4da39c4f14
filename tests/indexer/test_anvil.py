"""The whole indexer on a real chain with the real contracts: reorgs, restarts, commands."""

import json
import queue
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest

from indexer import query, rows
from indexer.errors import LockedError, StoreError, UnavailableError, UnknownBlockError, WrongChainError
from indexer.service import index_rebuild, index_run, index_status, index_verify
from indexer.settings import Settings
from indexer.store.writer import open_writer
from indexer.sync import follow, run_once
from tests.indexer.conftest import QUICK, clean_index, everything, steps_to
from tests.indexer.world import World, anvil


def test_index__of_real_traffic__agrees_with_the_contracts(world, database):
    node_id, service_id = world.traffic(6)
    with clean_index(database, world.deployment(), world.rpc) as writer:
        assert query.status(writer.store).value.quarantined == 0
        node = query.node(writer.store, node_id).value
        word = 64
        ratings = world.view("ReputationLedger", "ratings", node_id)[2:]
        on_chain = [int(ratings[at : at + word], 16) for at in range(0, 5 * word, word)]
        assert on_chain == [node.rating_sum, node.rating_count, node.unpaid_count, node.paid_weight, node.weighted_sum]
        assert int(world.view("SessionManager", "active_sessions", node_id), 16) == node.active_sessions == 6
        for account in world.accounts[1:4]:
            owed = int(world.view("SessionManager", "credit_of", account), 16)
            assert query.credit_of(writer.store, account).value == owed
        (candidate,) = query.candidates(writer.store, "data:crypto").value
        assert (candidate.service_id, candidate.price, candidate.stake) == (service_id, 15, 3000 + 615)
        assert query.service(writer.store, service_id).value.endpoint == "http://node.example"


@pytest.mark.parametrize("depth", [1, 7, 40])
def test_follow__through_a_reorg__has_the_rows_of_a_clean_index(world, database, tmp_path, depth):
    world.traffic(7)
    deployment = world.deployment()
    stop, at_head = threading.Event(), threading.Event()
    target = [world.head()]

    def progress(step):
        if step.cursor.number >= target[0]:
            at_head.set()

    with open_writer(database, deployment) as writer:
        ended = []
        thread = threading.Thread(
            target=lambda: ended.append(
                follow(writer, world.rpc, stop=stop, options=QUICK, observer=steps_to(progress))
            )
        )
        thread.start()
        try:
            assert at_head.wait(30)
            target[0] = 10**9
            other = World(world.url)
            other.names = world.names
            other.reorg(depth)
            other.mine(2)
            other.node(other.accounts[5], category="text:chat")
            at_head.clear()
            target[0] = other.head()
            assert at_head.wait(30)
            other.rpc.close()
        finally:
            stop.set()
            thread.join(20)
        assert ended[0].reorgs >= 1
        assert ended[0].block == target[0]
        with clean_index(tmp_path / "clean.sqlite", deployment, world.rpc) as clean:
            assert everything(writer.store) == everything(clean.store)


def test_follow__with_a_websocket__hears_of_a_block_before_it_polls(world, database, tmp_path):
    """It polls once in ten minutes, so that only the subscription can tell of what is mined meanwhile."""
    stop, told = threading.Event(), queue.Queue()
    options = replace(QUICK, poll_seconds=600, websocket_url=world.url.replace("http:", "ws:"))
    with open_writer(database, world.deployment()) as writer:
        thread = threading.Thread(
            target=follow,
            args=(writer, world.rpc),
            kwargs={"stop": stop, "options": options, "observer": steps_to(lambda step: told.put(step.cursor.number))},
        )
        thread.start()
        try:
            with closing(World(world.url).rpc) as rpc:
                reached = told.get(timeout=30)
                for _ in range(3):
                    rpc.call("anvil_mine", ["0x1"])
                    while reached < int(rpc.call("eth_blockNumber", []), 16):
                        reached = told.get(timeout=30)
        finally:
            stop.set()
            thread.join(20)
        assert not thread.is_alive()
        with clean_index(tmp_path / "clean.sqlite", world.deployment(), world.rpc) as clean:
            assert everything(writer.store) == everything(clean.store)


def test_run_once__in_full_on_a_real_chain__has_the_rows_of_the_bloom_and_tells_what_it_took(world, database, tmp_path):
    world.traffic(3)
    deployment = world.deployment()
    with (
        clean_index(tmp_path / "bloom.sqlite", deployment, world.rpc) as bloom,
        open_writer(database, deployment) as writer,
    ):
        result = run_once(writer, world.rpc, options=replace(QUICK, verify="full"))
        assert everything(writer.store) == everything(bloom.store)
    assert result.notices == ()
    assert result.verified_blocks == result.verification_calls == len({row[0] for row in logs_of(world)})
    assert result.verification_bytes > 500 * result.verified_blocks


def logs_of(world):
    """Block and index of every log of anybody since the deployment."""
    first = world.deployment().first_block
    logs = world.rpc.call("eth_getLogs", [{"fromBlock": hex(first), "toBlock": "latest"}])
    return [(int(log["blockNumber"], 16), int(log["logIndex"], 16)) for log in logs]


def test_run_once__after_reorgs_while_stopped__has_the_rows_of_a_clean_index(world, database, tmp_path):
    deployment = world.deployment()
    with open_writer(database, deployment) as writer:
        operator = world.accounts[1]
        _, service_id = world.node(operator)
        for depth in (2, 5, 3):
            for price in range(6):
                world.send(operator, "NodeRegistry", "set_price", service_id, 10 * depth + price)
            run_once(writer, world.rpc, options=QUICK)
            world.reorg(depth)
        run_once(writer, world.rpc, options=QUICK)
        with clean_index(tmp_path / "clean.sqlite", deployment, world.rpc) as clean:
            assert everything(writer.store) == everything(clean.store)


def test_run_once__on_a_restarted_chain__names_the_remedy_and_keeps_the_rows(database):
    with anvil("--timestamp", "1700000000") as url:
        first = World(url).deploy()
        first.node(first.accounts[1])
        deployment = first.deployment()
        with clean_index(database, deployment, first.rpc) as writer:
            before = everything(writer.store)
        first.rpc.close()
    with anvil() as url:
        second = World(url).deploy()
        second.mine(60)
        with open_writer(database, deployment) as writer:
            with pytest.raises(WrongChainError, match=r"restarted.*make demo"):
                run_once(writer, second.rpc, options=QUICK)
            assert everything(writer.store) == before
        with pytest.raises(StoreError, match="another deployment"), open_writer(database, second.deployment()):
            pass
        second.rpc.close()


@pytest.fixture
def settings(world, tmp_path):
    folder = tmp_path / "home" / "deployments"
    folder.mkdir(parents=True)
    (folder / "31337.json").write_text(json.dumps(world.document()))
    return Settings(home=tmp_path / "home", rpc_url=world.url, poll_seconds=0.01)


def test_commands__over_a_chains_life__give_values(world, settings, tmp_path):
    with pytest.raises(StoreError, match="no index at"):
        index_status(settings)
    with pytest.raises(StoreError, match="no index at"):
        index_rebuild(settings)
    world.traffic(2)
    seen = []
    ran = index_run(settings, follow=False, observer=steps_to(seen.append))
    assert (ran.block, ran.head) == (world.head(), world.head())
    assert (seen[-1].cursor.number, seen[-1].head.number, sum(step.logs for step in seen)) == (
        ran.block, ran.head, ran.logs
    )  # fmt: skip
    status = index_status(settings)
    assert (status.as_of.block, status.head, status.status.sessions) == (ran.block, ran.head, 4)
    rebuilt = index_rebuild(settings)
    assert (rebuilt.blocks, rebuilt.digest, rebuilt.quarantined) == (ran.blocks, status.status.digest, 0)
    other = Settings(**settings.model_dump() | {"database": str(tmp_path / "other.sqlite")})
    index_run(other)
    verified = index_verify(settings, tmp_path / "other.sqlite")
    assert (verified.first_block, verified.last_block, verified.differs_at) == (2, ran.block, None)


def test_index_verify__of_a_file_and_a_url__agrees_in_both_directions(world, settings, postgresql, tmp_path):
    world.traffic(1)
    file = tmp_path / "file.sqlite"
    with postgresql.index() as url:
        in_file, at_url = (
            Settings(**settings.model_dump() | {"database": database}) for database in (f"sqlite:///{file}", url)
        )
        index_run(in_file)
        index_run(at_url)
        for ours, against in ((in_file, url), (at_url, file)):
            found = index_verify(ours, against)
            assert (found.last_block, found.differs_at, found.why) == (world.head(), None, None)
        with pytest.raises(StoreError, match=r"Connection refused.*check --against"):
            index_verify(in_file, "postgresql://nobody@127.0.0.1:1/none")


def test_index_run__following_in_a_thread__serves_questions_and_stops(world, settings):
    stop, caught_up = threading.Event(), threading.Event()
    failures = []

    def run():
        try:
            index_run(settings, follow=True, observer=steps_to(lambda _: caught_up.set()), stop=stop)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert caught_up.wait(30)
    with pytest.raises(LockedError):
        index_run(settings)
    with query.open_store(settings.database_url()) as store:
        assert query.candidates(store, "data:crypto").value == ()
        assert query.sessions(store, status=rows.OPEN).value.items == ()
    stop.set()
    thread.join(20)
    assert not thread.is_alive()
    assert failures == []


def test_index_status__of_a_damaged_index__is_a_sentence(settings):
    index_run(settings)
    with closing(sqlite3.connect(settings.home / "index.sqlite")) as connection:
        connection.execute("DROP TABLE node")
    with pytest.raises(StoreError, match=r"no such table: node.*COUNTERFOIL_DATABASE"):
        index_status(settings)


def test_index_status__without_a_node__knows_no_head(settings, database, world):
    index_run(settings)
    alone = Settings(**settings.model_dump() | {"rpc_url": "http://127.0.0.1:9"})
    assert index_status(alone).head is None
    assert index_status(alone).as_of.block == world.head()


def test_index_run__without_a_node__raises_after_its_attempts(settings):
    alone = Settings(**settings.model_dump() | {"rpc_url": "http://127.0.0.1:9"})
    with pytest.raises(UnavailableError, match="is the node running"):
        index_run(alone)
    assert index_status(alone).as_of is None
    with pytest.raises(UnknownBlockError, match="is empty"):
        index_rebuild(alone)
