"""`GET /metrics`: what was asked, how long it took, and how far the index is, under labels that nobody can multiply."""

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from counterfoil.api import metrics
from counterfoil.api.app import create_app
from indexer.query import open_store
from indexer.store.writer import open_writer
from tests.api.support import assert_problem
from tests.indexer.model import Chain, load
from tests.support.market import serving


@pytest.fixture
def served(busy):
    """An API whose counts begin at nothing."""
    with open_store(busy.settings().database_url()) as store:
        app = create_app(store, busy.world.receipts)
        with serving(app) as url, httpx.Client(base_url=url) as client:
            yield app, client


def samples(api):
    answer = api.get("/metrics")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, metrics.MEDIA_TYPE)
    families = text_string_to_metric_families(answer.text)
    return {_named(item): item.value for family in families for item in family.samples}


def _named(item):
    return (item.name, *(item.labels[label] for label in ("route", "method", "status", "le") if label in item.labels))


def requests(found):
    return {name[1:]: value for name, value in found.items() if name[0] == "counterfoil_api_requests_total"}


def test_metrics__after_requests__count_them_by_template_method_and_status(served):
    _, api = served
    for path in ("/services/1", "/services/2", "/services/900", "/services?limit=0"):
        api.get(path)
    api.delete("/nodes")
    api.post("/receipts", content=b"{}")
    assert requests(samples(api)) == {
        ("/services/{service_id}", "GET", "200"): 2,
        ("/services/{service_id}", "GET", "404"): 1,
        ("/services", "GET", "400"): 1,
        ("/nodes", "DELETE", "405"): 1,
        ("/receipts", "POST", "400"): 1,
    }


def test_metrics__of_paths_and_methods_that_a_client_made_up__have_one_label(served):
    _, api = served
    for name in ("a", "b", "c"):
        api.get(f"/{name}")
        api.request(f"MADE{name.upper()}", f"/{name}")
    api.get("/" + "x" * 9000)
    assert requests(samples(api)) == {
        ("other", "GET", "404"): 3,
        ("other", "other", "404"): 3,
        ("other", "GET", "414"): 1,
    }


def test_metrics__of_seconds__are_a_histogram_by_route(served):
    _, api = served
    api.get("/nodes")
    found = samples(api)
    assert found["counterfoil_api_request_seconds_count", "/nodes"] == 1
    assert found["counterfoil_api_request_seconds_bucket", "/nodes", "+Inf"] == 1
    assert 0 < found["counterfoil_api_request_seconds_sum", "/nodes"] < 30


def test_metrics__of_a_request_that_fails__count_it_as_the_500_that_it_is(served):
    app, api = served
    app.add_api_route("/broken", lambda: 1 / 0)
    assert_problem(httpx.get(f"{api.base_url}/broken"), 500, "internal")  # its connection ends with it
    assert requests(samples(api))["/broken", "GET", "500"] == 1


def test_metrics__of_the_index__are_its_newest_block(served):
    _, api = served
    found = samples(api)
    assert found["counterfoil_api_index_block",] == api.get("/status").json()["as_of"]["block"]
    assert found["counterfoil_api_ready",] == 1


def test_metrics__of_an_index_that_is_empty__are_not_ready_and_no_number_until_it_is(tmp_path, monkeypatch):
    chain, path = Chain(), tmp_path / "index.sqlite"
    with open_writer(path, chain.deployment()) as writer, open_store(path) as store:
        made = metrics.Metrics(store)
        assert b"counterfoil_api_ready 0.0\n" in made.text()
        assert b"counterfoil_api_index_block NaN\n" in made.text()
        load(writer, chain)
        assert b"counterfoil_api_ready 0.0\n" in made.text()  # asked a moment ago
        monkeypatch.setattr(metrics, "READ_SECONDS", 0)
        assert f"counterfoil_api_index_block {float(chain.head)}\n".encode() in made.text()
        assert b"counterfoil_api_ready 1.0\n" in made.text()
