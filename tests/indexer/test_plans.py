"""Every question walks along an index, at the head and in the past, however many versions a key has."""

import re

import pytest
from sqlalchemy import event

from indexer import query, rows
from indexer.changes import Mark, changes_since
from indexer.records import record_changes, records_of
from indexer.store.bulk import insert_rows
from indexer.store.database import open_locked
from indexer.store.moment import moment_at
from indexer.store.tables import METADATA, POSTED, table_of
from tests.indexer.model import CLIENT, OPERATOR, digest, session_id

NODES, BLOCKS = 60, 4000
SESSIONS = 6000
HEAD = 2 * BLOCKS
CATEGORY = "category-3"

QUESTIONS = {
    "candidates": [("service_category", lambda store, at: query.candidates(store, CATEGORY, at))],
    "services": [
        ("service_current", lambda store, at: query.services(store, after=5, limit=20, at=at)),
        ("service_category", lambda store, at: query.services(store, category=CATEGORY, limit=20, at=at)),
        ("service_node", lambda store, at: query.services(store, node_id=7, routable=True, at=at)),
    ],
    "service": [("service_current", lambda store, at: query.service(store, 7, at))],
    "nodes": [
        ("node_current", lambda store, at: query.nodes(store, after=5, limit=20, at=at)),
        ("node_operator", lambda store, at: query.nodes(store, operator=OPERATOR, at=at)),
    ],
    "node": [("node_current", lambda store, at: query.node(store, 7, at))],
    "sessions": [
        ("session_number", lambda store, at: query.sessions(store, after=50, limit=20, at=at)),
        ("session_client", lambda store, at: query.sessions(store, client=CLIENT, limit=20, at=at)),
        ("session_node", lambda store, at: query.sessions(store, node_id=7, limit=20, at=at)),
        ("session_service", lambda store, at: query.sessions(store, service_id=7, limit=20, at=at)),
        ("session_(status|number)", lambda store, at: query.sessions(store, status=rows.CLOSING, limit=20, at=at)),
    ],
    "session": [
        ("session_number", lambda store, at: query.session(store, 77, at)),
        ("session_current", lambda store, at: query.session(store, session_id(77), at)),
        ("session_current", lambda store, at: query.session(store, session_id(77)[:9], at)),
    ],
    "session_committed": [
        ("session_client", lambda store, _: query.session_committed(store, CLIENT, digest("decision", 7)))
    ],
    "sessions_between": [("session_opened", lambda store, at: query.sessions_between(store, 100, 120, at))],
    "credit_of": [(None, lambda store, at: query.credit_of(store, CLIENT, at))],
    "court_credit_of": [(None, lambda store, at: query.court_credit_of(store, CLIENT, at))],
    "ratings_of": [
        ("rating_node_id", lambda store, at: query.ratings_of(store, node_id=7, limit=5, at=at)),
        ("rating_node_id", lambda store, at: query.ratings_of(store, node_id=7, after=100 << 24, limit=5, at=at)),
        ("rating_session_id", lambda store, at: query.ratings_of(store, session_id=session_id(77), at=at)),
    ],
    "experience_of": [
        (None, lambda store, at: query.experience_of(store, limit=5, at=at)),
        ("experience_service_id", lambda store, at: query.experience_of(store, service_id=7, limit=5, at=at)),
        ("experience_session_id", lambda store, at: query.experience_of(store, session_id=session_id(77), at=at)),
    ],
    "slashes_of": [("slash_node_id", lambda store, at: query.slashes_of(store, 7, limit=5, at=at))],
    "disputes": [
        ("dispute_current", lambda store, at: query.disputes(store, after=5, limit=5, at=at)),
        ("dispute_node", lambda store, at: query.disputes(store, node_id=7, limit=5, at=at)),
        ("dispute_session", lambda store, at: query.disputes(store, session_id=session_id(77), at=at)),
    ],
    "parameters": [(None, query.parameters)],
    "as_of": [(None, query.as_of), ("ix_block_hash", lambda store, _: query.as_of(store, digest("block", 9)))],
    "quarantined": [(None, lambda store, _: query.quarantined(store, after=100 << 24, limit=5))],
    "status": [("node_current", lambda store, _: query.status(store))],
}
"""What is asked, and the index that must lead to its keys; where none is named, the primary key does."""
SMALL = {"meta", "cursor", "parameter"}
"""What holds a few rows, whatever the chain did."""
COUNTED = {"raw_log", "quarantine"}
"""What `status` counts."""


def chain_of(changes):
    """Blocks in which a version begins and ends, the last one being current."""
    return zip(changes, [*changes[1:], None], strict=True)


def node_rows(number):
    """Versions of all that is of a node, as if each changed often and one very often."""
    often = range(2 + number, HEAD, 1 if number == 7 else 97)
    for start, end in chain_of(list(often)):
        yield rows.NodeLoad(number, start % 5), start, end
    for start, end in chain_of(list(range(2 + number, HEAD, 401))):
        yield rows.Node(number, OPERATOR if number % 30 == 0 else CLIENT, f"http://{start}"), start, end
        yield rows.NodeStake(number, 10**20 + start, 0, 0), start, end
        yield rows.NodeReputation(number, start, 3, 0, 10**19, 10**20), start, end
        yield rows.Capability(number, "routing.v1", enabled=True), start, end
        for place in range(10):
            service_id = 10 * number + place
            category = f"category-{service_id % 50}"
            category_id = query.category_id(category)
            yield rows.Service(service_id, number, category_id, category, start, "ipfs://m", active=True), start, end


def session_rows(number):
    opened = 2 + number
    values = {
        "session_id": session_id(number), "number": number, "client": CLIENT if number % 50 == 0 else OPERATOR,
        "service_id": number % NODES, "node_id": number % NODES, "operator": OPERATOR, "signer": CLIENT, "price": 1,
        "max_price": 1, "deposit": 9, "expires_at": 9, "policy": 1, "nonce": 1, "attempt": 0, "snapshot_block": 1,
        "snapshot_hash": "0x", "draw_seed": "0x", "price_cap": 1, "decision": "0x", "opened_block": opened,
        "closes_at": 0, "paid": 0, "refunded": 0, "calls": 0,
    }  # fmt: skip
    yield rows.Session(**values, status=rows.OPEN), opened, opened + 9
    yield rows.Session(**values, status=rows.CLOSING), opened + 9, opened + 12
    yield rows.Session(**values, status=rows.SETTLED), opened + 12, None
    yield rows.Dispute(number, session_id(number), number % NODES, CLIENT, 1, 1, "e", 1, 0), opened + 12, opened + 13
    yield rows.Dispute(number, session_id(number), number % NODES, CLIENT, 1, 1, "e", 2, 1), opened + 13, None


def account_rows():
    for owed in (rows.Credit, rows.CourtCredit):
        for start, end in chain_of(list(range(2, BLOCKS))):
            yield owed(CLIENT, start), start, end


def facts(number):
    node_id = number % NODES
    yield rows.Rating(session_id(number), node_id, CLIENT, node_id, 80, 5, counted=True)
    yield rows.Experience(session_id(number), "curl", node_id, "n", "t", True, 1, 0, 255, 9, 1, "", "")
    yield rows.Slash(node_id, 1, 2, CLIENT)


def fill(store):
    """Rows straight into the tables: what is asked here is how they are found."""
    versions = [made for number in range(1, NODES + 1) for made in node_rows(number)]
    versions += [made for number in range(1, SESSIONS + 1) for made in session_rows(number)]
    versions += account_rows()
    placed = [(number, fact) for number in range(1, SESSIONS + 1) for fact in facts(number)]
    with store.write() as connection:
        for row_type in rows.VERSIONED:
            of_type = [(start, end, *rows.values_of(row)) for row, start, end in versions if type(row) is row_type]
            insert_rows(connection, table_of(row_type), ("valid_from", "valid_to", *rows.columns_of(row_type)), of_type)
        for fact_type in (rows.Rating, rows.Experience, rows.Slash):
            of_type = [(2 + number, 1, *rows.values_of(fact)) for number, fact in placed if type(fact) is fact_type]
            columns = ("valid_from", "log_index", *rows.columns_of(fact_type))
            insert_rows(connection, table_of(fact_type), columns, of_type)
        of_type = [(1, 2 + number, *rows.values_of(tuple(facts(number))[1]), "0x") for number in range(1, SESSIONS + 1)]
        columns = ("place", "valid_from", *rows.columns_of(rows.Experience), "signature")
        insert_rows(connection, POSTED, columns, of_type)
        for name, columns, values in INDEX_ITSELF:
            insert_rows(connection, METADATA.tables[name], columns, values)


INDEX_ITSELF = [
    ("meta", ("name", "value"), [("chain_id", "1"), ("genesis_hash", "0x"), ("first_block", "1")]),
    ("cursor", ("id", "number", "hash", "finalized"), [(1, HEAD, "0x", 5)]),
    (
        "parameter", ("valid_from", "log_index", "contract", "name", "value"),
        [(1, 0, "NodeRegistry", "min_stake", "1000"), (1, 0, "NodeRegistry", "stake_per_slot", "500")],
    ),
    (
        "block", ("number", "hash", "parent_hash", "timestamp", "digest"),
        [(number, digest("block", number), "0x", 1, "0x") for number in range(1, HEAD + 1)],
    ),
    ("quarantine", ("block_number", "log_index", "reason"), [(number, 1, "?") for number in range(1, BLOCKS)]),
    (
        "raw_log",
        ("block_number", "log_index", "block_hash", "tx_hash", "tx_index", "address", "topics", "data"),
        [(number, 1, "0x", "0x", 1, "0x", "0x", "0x") for number in range(1, BLOCKS)],
    ),
]  # fmt: skip


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def crowded(request, tmp_path_factory):
    """An index in which nodes, services and accounts have up to 8,000 versions."""
    if request.param == "sqlite":
        with open_locked(tmp_path_factory.mktemp("plans") / "index.sqlite") as store:
            fill(store)
            yield store
        return
    with request.getfixturevalue("postgresql").empty() as url, open_locked(url) as store:
        fill(store)
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")
        yield store


def plans(store, ask, at):
    """The plans of all that a question asks the database."""
    asked = []

    def record(_connection, _cursor, statement, parameters, _context, _many):
        asked.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", record)
    try:
        ask(store, at)
    finally:
        event.remove(store.engine, "before_cursor_execute", record)
    explain = "EXPLAIN (COSTS OFF)" if store.engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    with store.read() as connection:
        return [
            (statement, [str(line[-1]) for line in connection.exec_driver_sql(f"{explain} {statement}", parameters)])
            for statement, parameters in asked
            if statement.startswith("SELECT")
        ]


def scans(lines):
    """The tables that a plan reads as a whole; an index of current rows alone, walked as a whole, is none."""
    for line in lines:
        whole = re.search(r"Seq Scan on (\w+)|^SCAN (\w+)", line)
        if whole and not re.search(r"USING (COVERING )?INDEX \w+_current", line):
            yield whole[1] or whole[2]


def sorts(lines):
    return [line for line in lines if re.search(r"^\s*(->)?\s*(Incremental )?Sort\b|USE TEMP B-TREE", line)]


def test_questions__that_are_asserted_here__are_all_there_are():
    asked = {name for name in query.__all__ if getattr(getattr(query, name), "__module__", "") == query.__name__}
    assert {name for name in asked if name.islower()} - {"category_id", "named_block"} == set(QUESTIONS)


@pytest.mark.parametrize("at", [None, BLOCKS // 2])
@pytest.mark.parametrize("name", QUESTIONS)
def test_question__of_an_index_with_many_versions__reads_no_table_as_a_whole_and_sorts_nothing(crowded, name, at):
    for index, ask in QUESTIONS[name]:
        asked = plans(crowded, ask, at)
        for statement, plan in asked:
            allowed = SMALL | (COUNTED if name == "status" else set())
            assert set(scans(plan)) <= allowed, "\n".join([statement, *plan])
            assert sorts(plan) == [], "\n".join([statement, *plan])
        used = "\n".join(line for _, plan in asked for line in plan)
        assert index is None or re.search(rf"\b{index}\b", used), used


def test_changes_since__a_block_of_an_index_with_many_versions__reads_no_table_as_a_whole(crowded):
    index_of = {"chain_id": "1", "genesis_hash": "0x"}
    mark = Mark(HEAD - 1, digest("block", HEAD - 1), "0x", 5, index_of)
    asked = plans(crowded, changes_since, mark)
    assert len(asked) > 5
    for statement, plan in asked:
        assert set(scans(plan)) <= SMALL, "\n".join([statement, *plan])


def changes_of_records(store, at):
    with moment_at(store, None) as moment:
        return record_changes(moment, at)


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda store, at: records_of(store, [7], at, 99), "posted_service_id"),
        (changes_of_records, "session_valid_from"),
    ],
    ids=["of a service", "of a step"],
)
def test_records__attested_and_posted__are_found_by_index(crowded, ask, index):
    asked = plans(crowded, ask, HEAD - 1)
    for statement, plan in asked:
        assert set(scans(plan)) <= SMALL, "\n".join([statement, *plan])
    assert index in "\n".join(line for _, plan in asked for line in plan)
