"""Posted records beside attested ones: which count, since when, and what a reorg does to them."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event

from indexer.errors import ReadOnlyError
from indexer.posted import Claim, add_posted, counting, standing
from indexer.records import record_changes, records_of
from indexer.rows import Experience
from indexer.source import Source
from indexer.store.database import open_store
from indexer.store.moment import moment_at
from tests.indexer.conftest import everything
from tests.indexer.model import CLIENT, Node, attested, listed, load, opened, registered, session_id, settled

PAID = 40


@pytest.fixture
def market(writer, chain):
    """One service with three sessions, of which the first two are settled; each paid 40 for 4 calls."""
    chain.append(*registered(1), listed(1, 1))
    chain.append(opened(1), opened(2), opened(3))
    chain.append(settled(1), settled(2))
    load(writer, chain)
    return writer


def record(number=1, tool="curl", cost=10, **other):
    values = {
        "session_id": session_id(number), "tool": tool, "service_id": 1, "need": "data:crypto", "task": "price",
        "worked": True, "calls": 1, "failures": 0, "judge_score": 90, "latency_ms": 5, "cost": cost, "message": "",
        "note": "posted",
    }  # fmt: skip
    return Experience(**values | other)


def post(writer, *records):
    with writer.store.add() as connection:
        return [add_posted(connection, one, "0x") for one in records]


def mine(writer, chain, *events):
    chain.append(*events)
    load(writer, chain, first=chain.head)


def switch(writer, chain, ancestor, *blocks):
    chain.rewind(ancestor)
    for events in blocks:
        chain.append(*events)
    found = Source(Node(chain), writer.deployment).fetch(ancestor + 1, chain.head)
    writer.replace_from(ancestor, found.headers, found.logs, None)


def notes(writer, at=None):
    return sorted((one.fact.tool, one.fact.note, one.block) for one in records_of(writer.store, [1], at, 99).value)


def test_posted_record__once_taken__counts_from_the_next_block_on_and_changes_no_answer_before(market, chain):
    head = chain.head
    assert post(market, record()) == [head + 1]
    assert notes(market) == []
    mine(market, chain)
    assert notes(market) == [("curl", "posted", head + 1)]
    assert notes(market, head) == []
    (found,) = records_of(market.store, [1], None, 99).value
    assert (found.price, found.timestamp) == (10, chain.blocks[-1]["timestamp"])


def test_posted_record__attested_later__counts_once_as_attested(market, chain):
    post(market, record())
    mine(market, chain)
    mine(market, chain, attested(1, note="attested", cost=30))
    assert notes(market) == [("curl", "attested", chain.head)]
    assert notes(market, chain.head - 1) == [("curl", "posted", chain.head - 1)]


def test_posted_record__when_attested_ones_leave_no_room__is_suspended(market, chain):
    post(market, record(cost=20), record(tool="chart", cost=11))
    mine(market, chain)
    assert [tool for tool, *_ in notes(market)] == ["chart", "curl"]
    mine(market, chain, attested(1, tool="other", note="", cost=PAID - 15))
    assert [tool for tool, *_ in notes(market)] == ["chart", "other"]


def test_posted_record__whose_session_a_reorg_unsettles__is_suspended_and_returns_when_it_settles_again(market, chain):
    settled_at = chain.head
    post(market, record(1), record(2, tool="chart"))
    mine(market, chain)
    switch(market, chain, settled_at - 1, [settled(2)], [])
    assert notes(market) == [("chart", "posted", settled_at + 1)]
    mine(market, chain, settled(1))
    assert notes(market) == [("chart", "posted", settled_at + 1), ("curl", "posted", settled_at + 2)]


def test_posted_record__over_a_reorg_and_back__changes_no_answer_as_of_a_block(market, chain):
    for _ in range(3):
        mine(market, chain)
    head, kept = chain.head, chain.blocks[:]
    assert post(market, record()) == [head + 1]
    switch(market, chain, head - 2, [])
    assert post(market, record(2)) == [head + 1]  # taken on the shorter branch
    chain.blocks[:] = kept
    chain.append()
    found = Source(Node(chain), market.deployment).fetch(head - 1, chain.head)
    market.replace_from(head - 2, found.headers, found.logs, None)
    assert [notes(market, block) for block in range(head - 3, head + 1)] == [[]] * 4
    assert notes(market) == [("curl", "posted", head + 1)] * 2


def test_posted_record__whose_node_becomes_the_clients_own_on_a_branch__does_not_count_there(market, chain):
    before = chain.head - 2
    post(market, record())
    mine(market, chain)
    assert len(notes(market)) == 1
    switch(market, chain, before, [opened(1, operator=CLIENT)], [settled(1)], [], [])
    assert notes(market) == []


def test_rebuild__leaves_posted_records_alone(market, chain):
    post(market, record())
    mine(market, chain)
    before = everything(market.store), notes(market)
    market.rebuild()
    assert (everything(market.store), notes(market)) == before


def test_standing__of_a_session__lists_what_is_attested_and_posted(market, chain):
    mine(market, chain, attested(1, tool="other", cost=3))
    post(market, record(cost=20), record(tool="chart", cost=2))
    with market.store.read() as connection:
        found = standing(connection, session_id(1))
        assert standing(connection, session_id(77)) is None
    assert (found.session.paid, found.session.calls) == (PAID, 4)
    assert found.attested == (Claim("other", 3),)
    assert found.posted == (Claim("curl", 20), Claim("chart", 2))
    assert found.counted() == [Claim("curl", 20), Claim("chart", 2)]


def test_record_changes__over_a_step__are_new_records_or_services_to_be_read_anew(market, chain):
    post(market, record())
    before = chain.head
    mine(market, chain)
    with moment_at(market.store, None) as moment:
        found = record_changes(moment, before)
        assert ([one.fact.note for one in found.records], found.renewed) == (["posted"], frozenset())
    mine(market, chain, attested(1, note="attested"))
    with moment_at(market.store, None) as moment:
        found = record_changes(moment, before + 1)
        assert ([one.fact.note for one in found.records], found.renewed) == (["attested"], {1})
        assert record_changes(moment, chain.head).records == ()


CLAIMS = st.lists(st.builds(Claim, st.sampled_from("abcd"), st.integers(0, 20)), max_size=6)


@given(st.integers(0, 50), st.integers(0, 5), CLAIMS, CLAIMS)
def test_counting__whatever_was_posted__keeps_the_ledgers_rules(paid, calls, attested_claims, posted_claims):
    unique = {claim.tool: claim for claim in posted_claims}
    posted_claims = list(unique.values())
    kept = counting(paid, calls, attested_claims, posted_claims)
    counted = list(attested_claims)
    for place, claim in enumerate(posted_claims):
        fits = (
            claim.tool not in {other.tool for other in attested_claims}
            and sum(other.cost for other in counted) + claim.cost <= paid
            and len(counted) < max(1, calls)
        )
        assert fits == (place in kept)
        counted += [claim] if fits else []


def test_add__by_many_at_once__gives_each_record_a_place_of_its_own(market, chain):
    def work(number):
        post(market, record(tool=f"tool {number}", cost=0))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with market.store.read() as connection:
        assert len(standing(connection, session_id(1)).posted) == 8


def test_append__while_a_record_is_added__waits_so_that_no_answered_block_gets_it(market, chain):
    began, done = threading.Event(), []

    def write():
        began.wait(20)
        mine(market, chain)
        done.append(chain.head)

    thread = threading.Thread(target=write)
    thread.start()
    with market.store.add() as connection:
        began.set()
        thread.join(0.3)  # the writer is given time to do what it must not
        counts_from = add_posted(connection, record(), "0x")
        assert done == []
    thread.join()
    assert notes(market) == [("curl", "posted", counts_from)]
    assert done == [counts_from]


def test_add__to_a_database_that_may_only_be_read__says_so(market, database):
    only_reads = {"sqlite": "PRAGMA query_only=1", "postgresql": "SET default_transaction_read_only = on"}
    with open_store(database) as store:
        statement = only_reads[store.engine.dialect.name]

        def forbid(connection, _):
            connection.execute(statement)
            connection.commit()

        event.listen(store.engine, "connect", forbid)
        store.engine.dispose()
        with pytest.raises(ReadOnlyError, match="may only be read"), store.add() as connection:
            add_posted(connection, record(), "0x")
