"""The API of the demo that was left up."""

import httpx
import pytest

from tests.demo.conftest import SESSIONS


@pytest.fixture(scope="module")
def api(demo):
    with httpx.Client(base_url=demo.api) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "name"),
    [("/services", "services"), ("/nodes", "nodes"), ("/sessions", "sessions"), ("/status", "status")],
)
def test_api__of_every_listing__names_its_block_and_has_an_etag(api, path, name):
    answer = api.get(path)
    body = answer.json()
    assert answer.status_code == 200
    assert set(body["as_of"]) == {"chain_id", "block", "hash", "timestamp", "finalized", "behind"}
    assert answer.headers["ETag"].startswith(f'"{body["as_of"]["hash"]}')
    assert body[name]
    assert api.get(path, headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_api__of_one_service_and_node__gives_amounts_as_strings(api):
    service = api.get("/services/6").json()["service"]
    assert (service["category"], service["price"], service["stake"]) == ("data:crypto-price", "4000", "400000000000")
    assert api.get("/nodes/4").json()["node"]["stake"] == "400000000000"


def test_api__of_a_session__takes_its_number_its_id_and_a_prefix(api):
    session = api.get("/sessions/1").json()["session"]
    for which in (session["session_id"], session["session_id"][:20]):
        assert api.get(f"/sessions/{which}").json()["session"] == session
    receipt = api.get(f"/receipts/{session['decision']}").json()
    assert receipt["choice"] == session["service_id"]


def test_api__of_pages__follows_links_through_everything_once(api):
    path, numbers = "/sessions?limit=5", []
    while path:
        answer = api.get(path)
        numbers += [row["number"] for row in answer.json()["sessions"]]
        path = answer.links["next"]["url"] if answer.links else None
    assert numbers == list(range(1, SESSIONS + 1))


def test_api__at_an_earlier_block__answers_as_of_then(api):
    opened = api.get("/sessions/1").json()["session"]["opened_block"]
    assert api.get(f"/sessions/1?at={opened}").json()["session"]["status"] == "open"
    assert api.get(f"/sessions/1?at={opened - 1}").status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("/services/999", 404, "not-found"),
        ("/services/x", 400, "bad-parameter"),
        ("/services?limit=0", 400, "bad-parameter"),
        ("/services?after=-1", 400, "bad-parameter"),
        ("/services?at=1e9", 400, "bad-question"),
        ("/services?at=" + "1" * 70, 400, "bad-parameter"),
        ("/nodes?at=999999999", 404, "unknown-block"),
        ("/nodes/99999999999999999999", 400, "bad-parameter"),
        ("/sessions/zz", 400, "bad-question"),
        ("/receipts/0x12", 400, "bad-question"),
        ("/receipts/0x" + "00" * 32, 404, "not-found"),
        ("/nothing", 404, "unknown-path"),
    ],
)
def test_api__with_a_bad_question__answers_with_a_problem(api, path, status, kind):
    answer = api.get(path)
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["type"]) == (status, f"urn:counterfoil:problem:{kind}")
    assert answer.status_code == status
    assert set(body) == {"type", "title", "status", "detail"}


def test_api__asked_whether_it_is_ready__is(api):
    assert api.get("/ready").status_code == api.get("/health").status_code == 200
