"""Questions: values, `at`, pages, prefixes, and the sentences of refusals."""

import threading

import pytest

from indexer import events as ev
from indexer import query, rows
from indexer.errors import QuestionError, UnknownBlockError
from indexer.source import Source
from tests.indexer.model import (
    ADDRESSES,
    CHAIN_ID,
    CLIENT,
    COURT,
    OPERATOR,
    Node,
    attested,
    disputed,
    listed,
    opened,
    rated,
    registered,
    resolved,
    session_id,
    settled,
)

OTHER = "0x" + "0e" * 20


@pytest.fixture
def chain(chain):
    """Blocks 2 to 9: three nodes, four services, some sessions."""
    chain.append(*registered(1, stake=5000), *registered(2, stake=999), *registered(3, stake=1000, operator=OTHER))
    chain.append(listed(1, 1, price=10), listed(2, 2, price=20), listed(3, 3, price=30), listed(4, 1, "text:chat"))
    chain.append(opened(1), opened(2), opened(3, node_id=3, service_id=3, client=OTHER))
    chain.append(settled(1), rated(1), attested(1), ev.Credited(CLIENT, 60))
    chain.append(ev.StakeChanged(2, 1000, 5, 7), ev.CapabilityChanged(1, "routing.v1", enabled=True))
    chain.append(ev.ServiceStatusChanged(1, active=False), ev.CapabilityChanged(1, "a", enabled=True))
    chain.append(ev.PriceChanged(3, 2**128 - 1), ev.CapabilityChanged(1, "a", enabled=False))
    chain.append(rated(2, score=20, paid=0), attested(2, tool="wget"), ev.StakeSlashed(1, 3, 0, COURT))
    return chain


@pytest.fixture
def store(writer, chain):
    fetched = Source(Node(chain), chain.deployment()).fetch(1, chain.head)
    writer.append(fetched.headers, fetched.logs, 6)
    return writer.store


def routable(store, at=None):
    return [row.service_id for row in query.candidates(store, "data:crypto", at).value]


def test_candidates__at_the_head__are_the_routable_listings_with_their_inputs(store, chain):
    answer = query.candidates(store, "data:crypto")
    assert answer.as_of == query.AsOf(CHAIN_ID, 9, chain.blocks[9]["hash"], 1_000_000 + 12 * 9, finalized=False)
    assert answer.value == (
        query.CandidateRow(2, 2, 20, 1000, 0, 0, 0, 2),
        query.CandidateRow(3, 3, 2**128 - 1, 1000, 0, 0, 1, 2),
    )


def test_candidates__at_earlier_blocks__are_those_of_then(store):
    assert [routable(store, block) for block in range(1, 10)] == [
        [],
        [],
        [1, 3],
        [1, 3],
        [1, 3],
        [1, 2, 3],
        *[[2, 3]] * 3,
    ]
    at_four = query.candidates(store, "data:crypto", 4).value
    assert at_four[0] == query.CandidateRow(1, 1, 10, 5000, 0, 0, 2, 10)
    at_five = query.candidates(store, "data:crypto", 5).value
    assert at_five[0] == query.CandidateRow(1, 1, 10, 5000, 80, 1, 1, 10)


def test_candidates__by_block_hash__are_those_of_the_block(store, chain):
    block_hash = chain.blocks[4]["hash"]
    by_hash = query.candidates(store, "data:crypto", block_hash)
    assert by_hash == query.candidates(store, "data:crypto", 4)
    assert by_hash == query.candidates(store, "data:crypto", block_hash.upper().replace("0X", "0x"))
    assert by_hash.as_of.finalized


def test_candidates__of_an_unknown_category__are_none(store):
    assert query.candidates(store, "data:weather").value == ()


@pytest.mark.parametrize("at", [0, 10, 2**63, 2**300, -1])
def test_question__about_a_block_outside__names_the_blocks_that_are_held(store, at):
    with pytest.raises(UnknownBlockError, match=f"holds blocks 1 to 9, not {at}: ask for one of those"):
        query.candidates(store, "data:crypto", at)


@pytest.mark.parametrize("at", ["0x" + "12" * 32, "latest", "", "9"])
def test_question__about_an_unknown_hash__says_so(store, at):
    with pytest.raises(UnknownBlockError, match="no block with this hash"):
        query.nodes(store, at=at)


def test_question__to_an_empty_index__says_how_to_fill_it(writer):
    with pytest.raises(UnknownBlockError, match="is empty: fill it with `counterfoil index run`"):
        query.status(writer.store)


def test_service__at_blocks__has_the_values_of_then(store):
    assert query.service(store, 1, 2).value is None
    assert query.service(store, 99).value is None
    assert query.service(store, 1).value == query.ServiceView(
        service_id=1, node_id=1, category_id=query.category_id("data:crypto"), category="data:crypto", price=10,
        metadata_uri="ipfs://1", active=False, routable=False, operator=OPERATOR, endpoint="http://node-1", stake=5000,
        max_concurrent=10, active_sessions=1, rating_sum=100, rating_count=2,
    )  # fmt: skip
    assert query.service(store, 2, 5).value.routable is False
    assert query.service(store, 2, 6).value.routable is True


def test_services__filtered_and_paged__come_in_order(store):
    def ids(**wanted):
        return [row.service_id for row in query.services(store, **wanted).value.items]

    assert ids() == [1, 2, 3, 4]
    assert ids(category="text:chat") == ids(node_id=1, after=1) == [4]
    assert ids(routable=True) == [2, 3, 4]
    first = query.services(store, limit=3).value
    assert ([row.service_id for row in first.items], first.next) == ([1, 2, 3], 3)
    last = query.services(store, limit=3, after=3).value
    assert ([row.service_id for row in last.items], last.next) == ([4], None)


def test_node__with_everything__has_its_values(store):
    assert query.node(store, 1).value == query.NodeView(
        node_id=1, operator=OPERATOR, endpoint="http://node-1", stake=5000, unbonding=0, release_at=0,
        max_concurrent=10, active_sessions=1, rating_sum=100, rating_count=2, unpaid_count=1, paid_weight=40,
        weighted_sum=3200, capabilities=("routing.v1",),
    )  # fmt: skip
    assert query.node(store, 1, 7).value.capabilities == ("a", "routing.v1")
    assert query.node(store, 1, 5).value.capabilities == ()
    assert query.node(store, 2).value.unbonding == 5
    assert query.node(store, 77).value is None


def test_nodes__of_an_operator__ignores_the_addresss_case(store):
    assert [row.node_id for row in query.nodes(store, operator=OTHER.upper().replace("0X", "0x")).value.items] == [3]
    page = query.nodes(store, limit=1).value
    assert ([row.node_id for row in page.items], page.next) == ([1], 1)


def test_session__by_number_id_and_prefix__is_the_same(store):
    first = query.session(store, 1).value
    assert (first.session_id, first.status, first.paid) == (session_id(1), rows.SETTLED, 40)
    for name in (session_id(1), session_id(1)[:10], session_id(1)[2:8], session_id(1).upper().replace("0X", "0x")):
        assert query.session(store, name).value == first
    assert query.session(store, 1, 4).value.status == rows.OPEN
    assert query.session(store, 1, 3).value is None
    assert query.session(store, 99).value is None
    assert query.session(store, "0x" + "00" * 32).value is None


def test_session__by_a_prefix_of_several__asks_for_more_digits(writer, chain):
    chain.append(opened(50, session_id="0xabcd" + "00" * 30), opened(51, session_id="0xabcd" + "11" * 30))
    fetched = Source(Node(chain), chain.deployment()).fetch(1, chain.head)
    writer.append(fetched.headers, fetched.logs, None)
    with pytest.raises(QuestionError, match="Several sessions start with 0xabcd"):
        query.session(writer.store, "0xabcd")
    assert query.session(writer.store, "0xabcd1").value.session_id == "0xabcd" + "11" * 30


@pytest.mark.parametrize("which", ["0x12", "abc", "0xzzzz", "", "0x" + "1" * 65, -1, 2**63])
def test_session__by_a_malformed_name__is_refused(store, which):
    with pytest.raises(QuestionError):
        query.session(store, which)


def test_sessions__filtered__are_those(store):
    def numbers(**wanted):
        return [row.number for row in query.sessions(store, **wanted).value.items]

    assert numbers() == [1, 2, 3]
    assert numbers(client=CLIENT) == [1, 2]
    assert numbers(node_id=3) == numbers(service_id=3) == [3]
    assert numbers(status=rows.OPEN) == [2, 3]
    assert numbers(status=rows.OPEN, at=4) == [1, 2, 3]
    assert numbers(after=1, limit=1) == [2]
    assert query.sessions(store, limit=2).value.next == 2


def test_sessions_between__blocks__are_those_opened_there(store, monkeypatch):
    assert [row.number for row in query.sessions_between(store, 4, 4).value] == [1, 2, 3]
    assert query.sessions_between(store, 5, 9).value == ()
    monkeypatch.setattr(query, "MAX_SESSIONS", 2)
    with pytest.raises(QuestionError, match="ask for fewer blocks"):
        query.sessions_between(store, 1, 9)


def test_ratings_of__a_node__come_in_order_and_as_of_a_block(store):
    found = query.ratings_of(store, node_id=1).value.items
    assert [(item.block, item.log_index, item.fact.score, item.fact.paid) for item in found] == [
        (5, 1, 80, 40),
        (9, 0, 20, 0),
    ]
    assert len(query.ratings_of(store, node_id=1, at=8).value.items) == 1
    assert query.ratings_of(store, session_id=session_id(2)).value.items == found[1:]


def test_experience_of__a_service__pages_by_place(store):
    first = query.experience_of(store, service_id=1, limit=1).value
    assert [item.fact.tool for item in first.items] == ["curl"]
    second = query.experience_of(store, service_id=1, limit=1, after=first.next).value
    assert ([item.fact.tool for item in second.items], second.next) == (["wget"], None)


def test_slashes_of__a_node__are_its_slashes(store):
    (item,) = query.slashes_of(store, 1).value.items
    assert item == query.Recorded(9, 2, rows.Slash(1, 3, 0, COURT))


def test_credit_of__an_account__is_what_it_is_owed(store):
    assert query.credit_of(store, CLIENT).value == 60
    assert query.credit_of(store, CLIENT, 4).value == 0


def test_disputes__of_a_node_and_a_session__are_as_of_a_block(writer, chain):
    chain.append(settled(2), disputed(2), ev.CourtCredited(OTHER, 3))
    last = chain.append(resolved(2, award=66), ev.CourtCredited(CLIENT, 71))
    fetched = Source(Node(chain), chain.deployment()).fetch(1, chain.head)
    writer.append(fetched.headers, fetched.logs, 6)
    (ended,) = query.disputes(writer.store, node_id=1).value.items
    assert (ended.dispute_id, ended.status, ended.award, ended.evidence) == (2, 2, 66, "ipfs://e")
    (open_then,) = query.disputes(writer.store, session_id=ended.session_id, at=last - 1).value.items
    assert (open_then.status, open_then.award) == (1, 0)
    assert query.disputes(writer.store, at=last - 2).value.items == ()
    assert query.disputes(writer.store, node_id=2).value.items == ()
    assert query.disputes(writer.store, after=2).value.items == ()
    assert query.court_credit_of(writer.store, CLIENT).value == 71
    assert query.court_credit_of(writer.store, CLIENT, last - 1).value == 0


def test_parameters__of_the_contracts__are_text(store):
    found = query.parameters(store).value
    assert found["NodeRegistry"]["min_stake"] == "1000"
    assert found["SessionManager"]["registry"] == ADDRESSES["NodeRegistry"]
    assert set(found) == set(ev.CONTRACTS)


def test_status__of_an_index__says_what_it_holds(store, chain):
    answer = query.status(store)
    assert answer.value == query.Status(
        genesis_hash=chain.blocks[0]["hash"], first_block=1, addresses=ADDRESSES, finalized_block=6,
        digest=answer.value.digest, raw_logs=sum(len(block["logs"]) for block in chain.blocks), raw_logs_from=None,
        quarantined=0, unknown_events=0, nodes=3, services=4, sessions=3,
    )  # fmt: skip
    assert len(answer.value.digest) == 66


@pytest.mark.parametrize("text", ["", "0x", "\ud800", "a\x00", "0x" + "zz" * 20, "0x" + "11" * 21, "' OR 1=1 --"])
def test_question__with_a_malformed_address_or_id__is_refused(store, text):
    for ask in (
        lambda: query.nodes(store, operator=text),
        lambda: query.sessions(store, client=text),
        lambda: query.credit_of(store, text),
        lambda: query.ratings_of(store, session_id=text),
    ):
        with pytest.raises(QuestionError, match="hex digits"):
            ask()
    with pytest.raises(UnknownBlockError):
        query.nodes(store, at=text)
    assert query.candidates(store, text).value == ()


@pytest.mark.parametrize("number", [-1, 2**63, 2**300])
def test_question__with_a_number_no_column_holds__is_refused(store, number):
    for ask in (
        lambda: query.node(store, number),
        lambda: query.service(store, number),
        lambda: query.services(store, after=number),
        lambda: query.sessions(store, node_id=number),
        lambda: query.sessions_between(store, 1, number),
        lambda: query.experience_of(store, service_id=number),
        lambda: query.experience_of(store, after=number),
    ):
        with pytest.raises(QuestionError, match="negative or past"):
            ask()


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_page__of_an_impossible_size__is_refused(store, limit):
    for ask in (query.services, query.nodes, query.sessions, query.ratings_of, query.quarantined):
        with pytest.raises(QuestionError, match="1 to 1000 items"):
            ask(store, limit=limit)


def test_question__from_many_threads_while_the_writer_writes__is_consistent(writer, store, chain):
    """Each block sets every price to its own number: an answer that mixed two blocks would show it."""
    failures, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answer = query.services(store, routable=True)
            prices = {row.price for row in answer.value.items}
            if answer.as_of.block > 9 and prices != {answer.as_of.block}:
                failures.append((answer.as_of.block, prices))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        number = chain.append(*[ev.PriceChanged(service_id, chain.head + 1) for service_id in (2, 3, 4)])
        fetched = Source(Node(chain), chain.deployment()).fetch(number, number)
        writer.append(fetched.headers, fetched.logs, None)
    stop.set()
    for thread in threads:
        thread.join(10)
    assert failures == []


def test_all__of_the_module__names_what_exists():
    assert [name for name in query.__all__ if not hasattr(query, name)] == []
