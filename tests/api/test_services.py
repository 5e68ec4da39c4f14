"""Listings and what agents found, over HTTP and in the terminal, after real jobs on a real chain."""

import time
from fractions import Fraction

import httpx
import pytest
from click.testing import CliRunner

from counterfoil.api.app import create_app
from counterfoil.cli.main import main
from indexer import query
from indexer.query import open_store
from tests.api.support import assert_problem
from tests.support.market import broken, market, serving
from tests.support.market import run as agent_run

STEP = {
    "category": "data:crypto-price", "need": "data:crypto", "task": "bitcoin spot price", "tool": "quote",
    "input": {"symbol": "BTC"}, "calls": 2,
}  # fmt: skip
PATIENCE = 20
"""Seconds after which a test fails that waits for the index."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Service 1 did two jobs well, service 2 failed at one, nobody has tried service 3."""
    with market(tmp_path_factory.mktemp("api")) as built:
        for operator, upstream in (("olga", None), ("dora", broken), ("emil", None)):
            more = {"upstream": upstream} if upstream else {}
            built.node(operator, price=100, stake=5_000_000, **more)
        store = built.follow()
        desk = built.desk("alice", store)
        for pinned in (1, 1, 2):
            agent_run(desk, service_id=pinned, **STEP)
        wait_until(lambda: query.as_of(store).block == built.world.chain.head().number)
        yield built


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def api(scene):
    with (
        open_store(scene.settings.database_url()) as store,
        serving(create_app(store, scene.world.receipts)) as url,
        httpx.Client(base_url=url) as client,
    ):
        yield client


@pytest.fixture
def run(scene):
    def command(*arguments):
        where = ["--home", str(scene.settings.home), "--rpc", scene.world.url]
        result = CliRunner(mix_stderr=False).invoke(main, [*map(str, arguments), *where])
        assert (result.exit_code, result.stderr) == (0, ""), result.stderr
        return result.stdout

    return command


def ask(api, path, **parameters):
    answer = api.get(path, params=parameters or None)
    assert answer.status_code == 200, answer.text
    as_of = answer.json()["as_of"]
    assert answer.headers["ETag"].startswith(f'"{as_of["hash"]}{".final" * as_of["finalized"]}')
    return answer.json()


def test_services__after_jobs__carry_reputation_headroom_and_what_was_found(api):
    one, two, three = ask(api, "/services")["services"]
    assert (one["rating_count"], one["active_sessions"], one["headroom"]) == (2, 0, "1")
    # The first rating is 100; the second one is less where this machine was slower then.
    assert 160 <= one["rating_sum"] <= 200
    assert one["reputation"] == str(Fraction(one["rating_sum"], 200))
    assert one["tested"].startswith("Tested for data:crypto: 2 runs · 100% ok · ")
    assert two["tested"] == "Tested for data:crypto: 1 run · 0% ok"
    assert (three["tested"], three["reputation"], three["rating_count"]) == (None, None, 0)


def test_services__at_the_head_and_as_of_its_block__are_the_same(api):
    newest = ask(api, "/services")
    assert ask(api, "/services", at=newest["as_of"]["hash"])["services"] == newest["services"]
    best = ask(api, "/services/best", task="bitcoin price")
    assert ask(api, "/services/best", task="bitcoin price", at=best["as_of"]["block"])["best"] == best["best"]


def test_best__for_a_task__names_the_label_that_matched_and_how_closely(api):
    one, two, three = ask(api, "/services/best", task="bitcoin prices in usd", need="data:crypto")["best"]
    assert [(row["place"], row["service"]["service_id"]) for row in (one, two, three)] == [(1, 1), (2, 2), (3, 3)]
    match = one["match"]
    assert (match["tool"], match["label"], match["closeness"]) == ("quote", "bitcoin spot price", "1/2")
    assert (match["runs"], match["calls"], match["cost"], match["worked_rate"]) == (2, "4", "400", "1")
    assert (two["match"]["worked_rate"], two["match"]["cost_per_call"]) == ("0", "0")
    assert (one["tried_for_need"], match["trusted"]) == (True, False)
    assert (three["tried_for_need"], three["match"]) == (False, None)


def test_best__by_pages__goes_on_where_the_link_says(api):
    first = api.get("/services/best", params={"need": "data:crypto", "limit": 2})
    assert [row["place"] for row in first.json()["best"]] == [1, 2]
    link = first.headers["Link"].removeprefix("<").partition(">")[0]
    assert [row["place"] for row in api.get(link).json()["best"]] == [3]


def test_experience__of_a_service__is_by_need_and_by_task(api):
    found = ask(api, "/services/1/experience")
    (need,), (task,) = found["experience"]["needs"], found["experience"]["tasks"]
    assert (found["service_id"], need["label"], task["label"]) == (1, "data:crypto", "bitcoin spot price")
    assert {name: need[name] for name in ("runs", "judge_score", "cost_per_call", "notes")} == {
        "runs": 2, "judge_score": None, "cost_per_call": "100", "notes": [],
    }  # fmt: skip
    nothing = {"needs": [], "needs_in_all": 0, "tasks": [], "tasks_in_all": 0}
    assert ask(api, "/services/3/experience")["experience"] == nothing


@pytest.mark.parametrize(
    ("path", "status", "kind", "words"),
    [
        ("/services/best", 400, "bad-question", "name a task, a need, or both"),
        ("/services/best?task=" + "x" * 201, 400, "bad-parameter", "task"),
        ("/services/best?task=x&limit=0", 400, "bad-parameter", "limit"),
        ("/services/best?task=x&what=1", 400, "bad-question", "there is no parameter 'what' here; there are: after"),
        ("/services?limit=5&limit=6", 400, "bad-question", "the parameter limit is there 2 times"),
        ("/services?after=-1", 400, "bad-parameter", "after"),
        ("/services?at=nothing", 400, "bad-question", "A block is its number"),
        ("/services?at=99999999", 404, "unknown-block", "The index holds blocks"),
        ("/services/9", 404, "not-found", "there is no service 9"),
        ("/services/9/experience", 404, "not-found", "there is no service 9"),
        ("/services/x", 400, "bad-parameter", "service_id"),
        ("/receipts/0x" + "%00" * 64, 400, "bad-question", "a digest is 0x and 64"),
        ("/services/best?task=x&after=100001", 400, "bad-parameter", "after"),
        ("/health?x=1", 400, "bad-question", "there is no parameter 'x' here; there are: none"),
    ],
)
def test_get__of_what_cannot_be_answered__is_a_problem_with_a_sentence(api, path, status, kind, words):
    assert words in assert_problem(api.get(path), status, kind)


def test_services_best__in_the_terminal__is_the_same_ranking(api, run):
    lines = run("services", "--best", "bitcoin prices in usd", "--need", "data:crypto").splitlines()
    assert lines[1].split() == ["place", "service", "price", "close", "trusted", "what", "was", "found"]
    assert lines[2].split()[:4] == ["1", "1", "100", "50%"]
    assert "Tested for bitcoin spot price: 2 runs · 100% ok" in lines[2]
    assert lines[4].endswith("nobody has tried it for this")
    assert all(len(line) <= 100 for line in lines)


def test_service_experience__in_the_terminal__shows_each_group(run):
    out = run("service", 1, "--experience")
    assert "quote  Tested for data:crypto: 2 runs · 100% ok" in out
    assert "quote  Tested for bitcoin spot price: 2 runs · 100% ok" in out
    assert "Nobody has said anything of this service yet." in run("service", 3, "--experience")


@pytest.mark.parametrize("arguments", [["--best", ""], ["--need", ""], ["--best", "x", "--category", "y"]])
def test_services__of_a_ranking_for_nothing_or_within_a_category__says_what_to_name(scene, arguments):
    result = CliRunner(mix_stderr=False).invoke(main, ["services", *arguments, "--home", str(scene.settings.home)])
    assert result.exit_code == 2
    assert "name one, and no --category" in result.stderr
