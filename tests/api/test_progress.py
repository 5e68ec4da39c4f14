"""How far the index is, and blocks that are not there any more, as the API tells them."""

import httpx
import pytest

from counterfoil.api.app import create_app
from counterfoil.receipt_store import ReceiptStore
from indexer.source import Source
from indexer.store.writer import open_writer
from tests.api.support import assert_problem
from tests.indexer.model import Chain, Node, listed, load, registered
from tests.support.market import serving


@pytest.fixture
def chain():
    made = Chain()
    made.append(*registered(1), listed(1, 1))
    for _ in range(6):
        made.append()
    return made


@pytest.fixture
def writer(chain, tmp_path):
    with open_writer(tmp_path / "index.sqlite", chain.deployment()) as opened:
        yield opened


@pytest.fixture
def api(writer, tmp_path):
    app = create_app(writer.store, ReceiptStore(tmp_path / "receipts"))
    with serving(app) as url, httpx.Client(base_url=url) as client:
        yield client


def append(writer, chain, first, last, target):
    found = Source(Node(chain), writer.deployment).fetch(first, last)
    writer.append(found.headers, found.logs, None, target)


def problem_of(answer):
    kind = answer.json()["type"].removeprefix("urn:counterfoil:problem:")
    assert_problem(answer, answer.status_code, kind)
    return answer.status_code, kind


def test_ready__in_a_backfill__is_503_until_its_target_while_answers_say_how_far_they_are(api, writer, chain):
    assert problem_of(api.get("/ready")) == (503, "empty-index")
    append(writer, chain, 1, 3, chain.head)
    answer = api.get("/ready")
    assert problem_of(answer) == (503, "not-ready")
    assert f"is at block 3 and lacks {chain.head - 3}" in answer.json()["detail"]
    known = api.get("/services/1")
    assert (known.status_code, known.json()["as_of"]["behind"]) == (200, chain.head - 3)
    assert known.headers["ETag"].endswith(f'.behind{chain.head - 3}"')
    append(writer, chain, 4, chain.head, chain.head)
    assert api.get("/ready").json()["as_of"]["behind"] == 0
    assert api.get("/services/1").json()["as_of"]["behind"] == 0


def test_at__of_a_block_that_a_reorg_took_away__answers_409_with_its_replacement(api, writer, chain):
    load(writer, chain)
    gone, taken = chain.blocks[-1]["hash"], chain.blocks[-2]["hash"]
    height = chain.head
    chain.rewind(height - 2)
    chain.append(listed(2, 1))
    found = Source(Node(chain), writer.deployment).fetch(height - 1, height - 1)
    writer.replace_from(height - 2, found.headers, found.logs, None)
    for path in ("/services/1", "/services", "/nodes", "/sessions", "/services/best?task=x"):
        answer = api.get(path, params=httpx.QueryParams(path.partition("?")[2]).add("at", taken))
        assert problem_of(answer) == (409, "replaced-block"), path
        told = answer.json()
        assert (told["block"], told["replacement"]) == (height - 1, chain.blocks[-1]["hash"])
    assert api.get("/services/1", params={"at": gone}).json()["replacement"] is None
    assert problem_of(api.get("/services/1", params={"at": "0x" + "9" * 64})) == (404, "unknown-block")


def test_at__of_a_block_that_came_back__is_answered(api, writer, chain):
    load(writer, chain)
    kept = chain.blocks[:]
    chain.rewind(chain.head - 1)
    chain.append(listed(2, 1))
    for blocks in (chain.blocks[:], kept):
        chain.blocks[:] = blocks
        found = Source(Node(chain), writer.deployment).fetch(chain.head, chain.head)
        writer.replace_from(chain.head - 1, found.headers, found.logs, None)
    assert api.get("/services/1", params={"at": kept[-1]["hash"]}).status_code == 200


def test_etag__while_the_index_fills_or_raw_logs_go__is_another_for_another_answer(api, writer, chain):
    append(writer, chain, 1, 3, chain.head)
    known = {path: api.get(path) for path in ("/services/1?at=3", "/nodes?at=3", "/status")}
    append(writer, chain, 4, 5, chain.head)
    for path, answer in known.items():
        again = api.get(path, headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.json() == answer.json()) == (200, False), path
    with writer.store.write() as connection:
        connection.exec_driver_sql("UPDATE cursor SET finalized = 5")
    before = api.get("/status").headers["ETag"]
    assert writer.prune(0) > 0
    assert api.get("/status", headers={"If-None-Match": before}).status_code == 200


@pytest.mark.parametrize("sent", ["{}", "W/{}", '"other", {}', '"other",W/{}', "*"])
@pytest.mark.parametrize("path", ["/services/1", "/nodes"])
def test_if_none_match__in_any_form_that_names_the_answer__is_answered_304(api, writer, chain, path, sent):
    load(writer, chain)
    etag = api.get(path).headers["ETag"]
    for _ in range(2):  # from the application, and from what is remembered
        assert api.get(path, headers={"If-None-Match": sent.format(etag)}).status_code == 304
        assert api.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_next_page__of_a_block_that_was_replaced__is_refused(api, writer, chain):
    chain.append(listed(2, 1))
    load(writer, chain)
    link = api.get("/services", params={"limit": 1}).links["next"]["url"]
    assert [row["service_id"] for row in api.get(link).json()["services"]] == [2]
    chain.rewind(chain.head - 1)
    chain.append(listed(3, 1))
    found = Source(Node(chain), writer.deployment).fetch(chain.head, chain.head)
    writer.replace_from(chain.head - 1, found.headers, found.logs, None)
    assert problem_of(api.get(link)) == (409, "replaced-block")
