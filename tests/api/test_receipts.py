"""`POST /receipts`, and what it changes for `GET /receipts` and `GET /audit`, on a real chain."""

import httpx
import pytest

from counterfoil.api.app import create_app
from counterfoil.receipt_store import ReceiptStore
from counterfoil.receipts import canonical, digest
from indexer.query import open_store
from indexer.service import index_run
from tests.api.support import assert_problem
from tests.support.market import serving


@pytest.fixture(scope="module")
def opened(busy):
    """A receipt that a session commits to and that nobody has kept, once indexed."""
    world = busy.world
    world.by("zoe")
    receipt = world.decide("zoe")
    session = world.open("zoe", receipt, save=False)
    index_run(busy.settings())
    return session, receipt


def post(api, data):
    return api.post("/receipts", content=data)


def test_post__of_a_sessions_receipt__keeps_it_once_and_the_audit_finds_it(busy, busy_api, opened):
    session, receipt = opened
    data, name = canonical(receipt), digest(receipt)
    assert_problem(busy_api.get(f"/receipts/{name}"), 404, "not-found")
    before = busy_api.get(f"/audit/{session}")
    assert (before.json()["audit"]["outcome"], before.json()["audit"]["by"]["receipt"]) == ("cannot be checked",) * 2
    kept = post(busy_api, data)
    assert (kept.status_code, kept.json()) == (201, {"digest": name})
    assert busy_api.get(kept.headers["Location"]).content == data
    assert [path.name for path in busy.world.receipts.folder.glob(f"*{name[2:]}*")] == [f"{name[2:]}.json"]
    again = post(busy_api, data)
    assert (again.status_code, again.json(), again.headers["Location"]) == (200, kept.json(), kept.headers["Location"])
    after = busy_api.get(f"/audit/{session}", headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, after.json()["audit"]["outcome"]) == (200, "ok")


def test_post__over_a_damaged_copy__puts_it_right(busy, busy_api, opened):
    _, receipt = opened
    path = busy.world.receipts.path(digest(receipt))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"cut")
    assert "damaged here: post it again" in assert_problem(
        busy_api.get(f"/receipts/{digest(receipt)}"), 500, "misconfigured"
    )
    assert post(busy_api, canonical(receipt)).status_code == 201
    assert path.read_bytes() == canonical(receipt)


def test_post__of_a_receipt_that_is_not_opened__is_refused_until_its_session_is_indexed(busy, busy_api):
    world = busy.world
    world.by("yan")
    receipt = world.decide("yan")
    data, name = canonical(receipt), digest(receipt)
    sentence = assert_problem(post(busy_api, data), 409, "uncommitted")
    assert f"no session of {world.by('yan').address} commits to {name}" in sentence
    assert not world.receipts.path(name).exists()
    world.open("yan", receipt, save=False)
    assert_problem(post(busy_api, data), 409, "uncommitted")
    index_run(busy.settings())
    assert post(busy_api, data).status_code == 201


def test_post__of_anothers_receipt__is_refused(busy, busy_api):
    """A session may commit to any digest; only the receipt's own client can make it one that is kept."""
    world = busy.world
    world.by("xi")
    receipt = world.decide("xi")
    world.open("mallory", world.decide("mallory"), decision=digest(receipt), save=False)
    index_run(busy.settings())
    assert_problem(post(busy_api, canonical(receipt)), 409, "uncommitted")


def test_post__to_a_folder_that_cannot_be_written__says_so_without_the_place(busy, opened, tmp_path):
    blocked = tmp_path / "receipts"
    blocked.write_text("a file where the folder would be")
    _, receipt = opened
    with (
        open_store(busy.settings().database_url()) as store,
        serving(create_app(store, ReceiptStore(blocked))) as url,
    ):
        sentence = assert_problem(httpx.post(f"{url}/receipts", content=canonical(receipt)), 500, "misconfigured")
    assert "make it writable" in sentence
    assert str(tmp_path) not in sentence
