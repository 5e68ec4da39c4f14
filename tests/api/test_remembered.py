"""Answers that are kept: the same as the application's, of the newest block, and no more of them than there is room."""

import asyncio

import httpx
import pytest

from counterfoil.api import remembered
from counterfoil.api.app import create_app
from counterfoil.api.remembered import Remembered, Shared
from counterfoil.receipt_store import ReceiptStore
from indexer.errors import StoreUnavailableError
from tests.directory.conftest import chain, database, new_database, postgresql, writer  # noqa: F401
from tests.indexer.model import attested, listed, load, opened, registered
from tests.support.market import serving


class Counting:
    """An application that counts what it is asked."""

    def __init__(self, app):
        self.app, self.asked = app, []

    async def __call__(self, scope, receive, send):
        self.asked.append(scope["path"])
        await self.app(scope, receive, send)


@pytest.fixture
def tried(writer, chain):  # noqa: F811
    """Three listings, one of them tried once."""
    chain.append(*registered(1), *(listed(number, 1) for number in (1, 2, 3)))
    chain.append(opened(1, 1, 1), opened(2, 1, 1))
    chain.append(attested(1, need="data:crypto", task="bitcoin price"))
    load(writer, chain)
    return chain


@pytest.fixture
def counting(writer, tried, tmp_path):  # noqa: F811
    app = Counting(create_app(writer.store, ReceiptStore(tmp_path)))
    with serving(Remembered(app, writer.store)) as url, httpx.Client(base_url=url) as client:
        yield app, client


def both(counting, path, **more):
    """An answer and how often the application was asked for it."""
    app, client = counting
    app.asked.clear()
    return client.get(path, **more), len(app.asked)


@pytest.mark.parametrize("path", ["/services?limit=2", "/services/best?need=data:crypto", "/services/1/experience"])
def test_get__of_what_was_asked_before__is_the_same_answer_from_memory(counting, path):
    (first, asked), (again, asked_again) = both(counting, path), both(counting, path)
    assert (asked, asked_again) == (1, 0)
    assert (again.content, dict(again.headers)) == (first.content, dict(first.headers))


def test_get__from_memory__is_counted_under_its_route(writer, tried, tmp_path):  # noqa: F811
    app = create_app(writer.store, ReceiptStore(tmp_path))
    seen = []

    async def noting(scope, receive, send):
        await kept(scope, receive, send)
        seen.append(scope["route"].path)

    kept = Remembered(app, writer.store)
    with serving(noting) as url, httpx.Client(base_url=url) as client:
        for _ in range(3):
            assert client.get("/services/1").status_code == 200
    assert seen == ["/services/{service_id}"] * 3


def test_get__after_a_new_block__is_answered_anew(counting, writer, tried):  # noqa: F811
    path = "/services/best?need=data:crypto&limit=1"
    assert both(counting, path)[0].json()["best"][0]["match"]["runs"] == 1
    tried.append(attested(2, need="data:crypto", task="bitcoin price"))
    load(writer, tried, tried.head)
    answer, asked = both(counting, path)
    assert (answer.json()["best"][0]["match"]["runs"], asked) == (2, 1)
    assert answer.json()["as_of"]["block"] == tried.head


def test_get__with_the_etag_that_is_known__is_304_with_the_same_headers(counting):
    first, _ = both(counting, "/services?limit=2")
    known, asked = both(counting, "/services?limit=2", headers={"If-None-Match": first.headers["ETag"]})
    assert (known.status_code, known.content, asked) == (304, b"", 0)
    assert (known.headers["ETag"], known.headers["Link"]) == (first.headers["ETag"], first.headers["Link"])
    other, _ = both(counting, "/services?limit=2", headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.content) == (200, first.content)


@pytest.mark.parametrize("path", ["/services/9", "/services?what=1", "/nodes"])
def test_get__of_a_problem_or_something_else__is_not_kept(counting, path):
    assert [both(counting, path)[1] for _ in range(2)] == [1, 1]


def test_answers__beyond_the_room_there_is__push_out_those_not_asked_for_longest(writer, tried, tmp_path):  # noqa: F811
    app = Counting(create_app(writer.store, ReceiptStore(tmp_path)))
    with serving(Remembered(app, writer.store, most=4500)) as url, httpx.Client(base_url=url) as client:
        for service_id in (1, 2, 1, 3, 1, 2):
            client.get(f"/services/{service_id}")
    assert app.asked == ["/services/1", "/services/2", "/services/3", "/services/2"]


def test_get__of_a_database_that_fails__is_the_problem_of_the_application(counting, monkeypatch):
    def locked(_):
        raise StoreUnavailableError("locked")

    monkeypatch.setattr(remembered, "newest_place", locked)
    assert [both(counting, "/services")[0].status_code for _ in range(2)] == [200, 200]


def test_shared__by_callers_that_come_together__reads_once_and_again_for_those_that_come_later():
    began = []

    async def scene():
        look = Shared(lambda: began.append(len(began)) or (len(began), "", "", None))
        together = await asyncio.gather(*(look() for _ in range(5)))
        return {place[0] for place in together}, (await look())[0]

    assert asyncio.run(scene()) == ({1}, 2)
