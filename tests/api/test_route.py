"""`GET /route` on a real chain, over an index that moves while the API is up."""

import httpx
import pytest

from counterfoil.api.app import create_app
from counterfoil.receipts import digest
from counterfoil.receipts.canonical import document
from indexer.query import open_store
from indexer.service import index_run
from tests.api.support import assert_problem
from tests.support.chain import CATEGORY
from tests.support.market import market, serving


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with market(tmp_path_factory.mktemp("api")) as built:
        for price, operator in enumerate(("olga", "dora", "emil"), 100):
            built.node(operator, price=price, up=False)
        built.world.by("alice")
        index_run(built.settings)
        yield built


@pytest.fixture(scope="module")
def api(scene):
    with (
        open_store(scene.settings.database_url()) as store,
        serving(create_app(store, scene.world.receipts)) as url,
        httpx.Client(base_url=url, params={"client": scene.world.by("alice").address}) as client,
    ):
        yield client


def route(api, **parameters):
    answer = api.get("/route", params={"category": CATEGORY, **parameters})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_route__at_the_head__is_the_receipt_that_an_agent_would_build(scene, api):
    receipt = scene.world.decide("alice", cap=101)
    found = route(api, cap=101)
    assert found["decision"] == document(receipt)
    assert found["digest"] == digest(receipt)
    assert found["as_of"]["hash"] == receipt.snapshot_hash


def test_route__after_a_change_and_after_a_reorg__is_of_the_chain_as_it_is_then(scene, api):
    world = scene.world
    world.by("olga").send(world.registry.set_price(1, 110))
    index_run(scene.settings)
    changed = route(api)
    assert changed["decision"] == document(world.decide("alice"))
    assert changed["decision"]["candidates"][0]["price"] == "110"
    world.rpc("anvil_reorg", 2, [])
    index_run(scene.settings)
    replaced = route(api)
    assert replaced["decision"] == document(world.decide("alice"))
    assert replaced["as_of"]["hash"] != changed["as_of"]["hash"]


def test_route__as_of_an_earlier_block__is_the_one_of_then(scene, api):
    block = scene.world.chain.head().number - 3
    assert route(api, at=block)["decision"] == document(scene.world.decide("alice", block=block))


def test_route__with_a_draw_number__draws_that(scene, api):
    assert route(api, nonce=7)["decision"] == document(scene.world.decide("alice", nonce=7))


def test_route__asked_again_in_the_same_block__is_not_sent_again(api):
    first = api.get("/route", params={"category": CATEGORY})
    again = api.get("/route", params={"category": CATEGORY}, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("parameters", "kind", "words"),
    [
        ({}, "bad-parameter", "category: Field required"),
        ({"category": "no:such"}, "bad-question", "no routable candidates at this block"),
        ({"category": "No Category"}, "bad-question", "category 'No Category' is not a category's name"),
        ({"category": CATEGORY, "client": "me"}, "bad-question", "not 0x and 40 hex digits"),
        ({"category": CATEGORY, "client": "me", "nonce": 1}, "bad-question", "client is not an address"),
        ({"category": CATEGORY, "cap": -1}, "bad-parameter", "cap: Input should be greater than or equal to 0"),
        ({"category": CATEGORY, "cap": 2**256 - 1}, "bad-parameter", "cap: Input should be less than"),
        ({"category": CATEGORY, "nonce": 2**53}, "bad-parameter", "nonce: Input should be less than"),
    ],
)
def test_route__with_a_bad_question__answers_with_a_problem(api, parameters, kind, words):
    assert words in assert_problem(api.get("/route", params=parameters), 400, kind)
