"""A plan says what a run would spend and where, and signs nothing."""

import pytest

from counterfoil.agent.calling import one_step
from counterfoil.agent.plan import plan
from counterfoil.agent.workflow import read
from counterfoil.agent.workflows import NothingFoundError
from counterfoil.chain.contracts import Write
from indexer.errors import UserError
from indexer.query import open_store
from indexer.service import index_run
from tests.support.chain import CATEGORY
from tests.support.market import market

NOWHERE = "0x000000000000000000000000000000000000dEaD"
STEPS = b"""
name: two
budget: 1000
steps:
  - {id: price, category: "data:crypto-price", input: {symbol: BTC}, calls: 3}
  - {id: news, category: "mcp:web-search", input: {query: "${price.0.price}"}, try_both: true}
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with market(tmp_path_factory.mktemp("plan")) as built:
        built.node("olga", price=100, up=False)
        built.node("dora", price=200, up=False, category="mcp:web-search")
        built.node("emil", price=200, up=False, category="mcp:web-search")
        index_run(built.settings)
        yield built


@pytest.fixture
def desk(scene):
    with open_store(scene.settings.database_url()) as store:
        yield lambda client="alice", **changes: scene.desk(client, store, **changes)


def one(desk, budget=None, **step):
    (planned,) = plan(desk, one_step(budget, **({"category": CATEGORY, "input": {}} | step))).steps
    return planned


def test_plan__of_a_workflow__says_where_each_step_would_go_and_what_all_may_take(scene, desk):
    mine = desk()
    before = scene.world.rpc("eth_getTransactionCount", mine.address, "latest")
    planned = plan(mine, read(STEPS, "here"))
    price, news = planned.steps
    assert (price.category, price.order, price.deposit, price.refused) == (CATEGORY, ((1, 100),), 300, "")
    assert price.reason.startswith("service 1 won attempt 0 with weight")
    assert sorted(news.order) == [(2, 200), (3, 200)]
    assert (news.deposit, planned.deposit, planned.lacks) == (400, 700, "")
    assert scene.world.rpc("eth_getTransactionCount", mine.address, "latest") == before
    assert (mine.journal.runs(9), mine.manager.draws(mine.address), mine.spending.spent().total) == ([], 0, 0)


def test_plan__with_try_both__doubles_the_deposit(desk):
    step = {"category": "mcp:web-search", "input": {"query": "x"}}
    assert (one(desk(), **step).deposit, one(desk(), **step, try_both=True).deposit) == (200, 400)


def test_plan__of_a_pin__goes_there_alone(desk):
    planned = one(desk(), category="mcp:web-search", input={"query": "x"}, service_id=3)
    assert planned.order == ((3, 200),)
    assert planned.reason.startswith("service 3")


def test_plan__without_an_index__says_so(desk, scene):
    planned = one(scene.desk("alice", None))
    assert planned.found_by == "candidates and endpoints by the chain, since there is no index"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"agent_max_per_call": 99}, "1 more than the cap per call of 99"),
        ({"agent_max_per_run": 299}, "passes the cap per run of 299 by 1: 0 are spent and 0 reserved"),
        ({"agent_max_per_day": 299}, "passes the cap per day"),
        ({"agent_max_per_operator": 299}, "passes the cap per operator and day"),
    ],
)
def test_plan__above_a_hard_cap__says_which(desk, settings, words):
    assert words in one(desk(**settings), calls=3).refused


def test_plan__above_the_budget_of_a_step__says_so(desk):
    assert one(desk(), 299, calls=3).refused.startswith("The deposit of 300 base units passes the cap per run of 299")
    steps = b"name: x\nsteps: [{id: a, category: 'data:crypto-price', input: {}, calls: 3, budget: 299}]"
    (planned,) = plan(desk(), read(steps, "here")).steps
    assert planned.refused == "a deposit of 300 is above the step's budget of 299"


def test_plan__whose_steps_pass_the_budget_only_together__refuses_the_one_that_does(desk):
    price, news = plan(desk(), read(STEPS.replace(b"budget: 1000", b"budget: 699"), "here")).steps
    assert price.refused == ""
    assert news.refused == (
        "The deposit of 400 base units passes the cap per run of 699 by 1: 0 are spent and 300 reserved. "
        "Raise that cap, or ask for less."
    )


def test_plan__of_a_cap_per_operator__adds_up_what_goes_to_the_same_one_only(desk):
    price, news = plan(desk(agent_max_per_operator=400), read(STEPS, "here")).steps
    assert (price.refused, news.refused) == ("", "")


def test_plan__of_a_wallet_without_tokens__says_how_many_are_missing(desk):
    poor = desk("poor")
    held = poor.token.balance_of(poor.address)
    poor.wallet.send(Write("Token.transfer", poor.token.contract.functions.transfer(NOWHERE, held - 30)))
    lacks = plan(poor, one_step(None, category=CATEGORY, input={})).lacks
    assert f"holds 30 of the payment token {poor.token.address} and needs 100" in lacks
    assert lacks.endswith("send it 70 more.")


def test_plan__of_a_wallet_without_gas__says_so_unless_a_relayer_has_some(scene, desk):
    bare = desk("bare")
    scene.world.rpc("anvil_setBalance", scene.world.by("bare").address, "0x0")
    workflow = one_step(None, category=CATEGORY, input={})
    assert plan(bare, workflow).lacks.startswith(f"The wallet {bare.address} has no gas: send it some")
    assert plan(desk("bare", relayer="alice"), workflow).lacks == ""


def test_plan__of_an_input_that_cannot_be_sent__says_so_and_names_the_step(desk):
    with pytest.raises(UserError, match="Step call: The input of an MCP tool is an object of its arguments"):
        one(desk(), category="mcp:web-search", input="bitcoin")


def test_plan__for_what_nobody_offers__says_so(desk):
    with pytest.raises(NothingFoundError, match=r"category data:weather: there are no .* `counterfoil services` lists"):
        one(desk(), category="data:weather")
    with pytest.raises(NothingFoundError, match="the directory knows no service for task 'poem' and need ''"):
        one(desk(), category="", task="poem")
