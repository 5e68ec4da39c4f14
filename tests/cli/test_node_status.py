"""Where a node stands, from a real chain alone, and with a real index."""

from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from counterfoil.chain.connection import Chain
from counterfoil.chain.contracts import NodeRegistry
from counterfoil.chain.errors import ChainError
from counterfoil.chain.listings import Listed, capabilities_of, services_of
from counterfoil.chain.provider import BoundedProvider
from counterfoil.cli.output import moment
from indexer import service as index
from indexer.settings import Settings
from tests.cli.test_node import words
from tests.support.chain import MIN_STAKE, STAKE_PER_SLOT, unused_url
from tests.support.market import serving

CATEGORY = "data:weather"


@pytest.fixture(scope="module")
def dear(town):
    """Dora's service asks 400 beside one at 100 and one at 200; gives its id."""
    town.node("one", MIN_STAKE, 100, CATEGORY)
    town.node("two", MIN_STAKE, 200, CATEGORY)
    return town.node("dora", MIN_STAKE * 2, 400, CATEGORY)


@pytest.fixture(scope="module")
def node_id(town, dear):
    return town.registry.service(dear).node_id


def test_status__from_the_chain_alone__is_its_state(town, operate, dear, node_id):
    town.by("dora").send(town.registry.set_capability(node_id, "routing.v1", True))
    found = operate("status", node_id, "--json")
    head = town.chain.head()
    document = found.json

    assert (found.code, found.err) == (0, "")
    assert document["as_of"] == {
        "chain_id": 31337, "block": head.number, "hash": head.hash, "timestamp": head.timestamp
    }  # fmt: skip
    assert {name: document[name] for name in ("node_id", "operator", "endpoint", "stake", "min_stake")} == {
        "node_id": node_id, "operator": town.by("dora").address, "endpoint": "http://dora.test",
        "stake": str(MIN_STAKE * 2), "min_stake": str(MIN_STAKE),
    }  # fmt: skip
    assert (document["stake_per_slot"], document["max_concurrent"], document["active_sessions"]) == (
        str(STAKE_PER_SLOT), str(MIN_STAKE * 2 // STAKE_PER_SLOT), 0
    )  # fmt: skip
    assert (document["capabilities"], document["index"], document["credit"]) == (["routing.v1"], None, "0")
    assert document["not_routed_because"] is None
    assert document["services"] == [
        {"service_id": dear, "category": CATEGORY, "price": "400", "active": True, "routable": True, "kept": False,
         "others": 2, "highest_kept": "200"}
    ]  # fmt: skip


def test_status__of_a_price_above_the_guard__says_no_traffic_and_what_to_ask(operate, dear, node_id):
    found = operate("status", node_id)
    said = words(found.out)

    assert found.code == 0
    assert "no traffic: over 120% of the average" in said
    assert f"the highest price that is kept is 200. counterfoil node set-price {dear} 200" in said
    assert "settled unknown without an index: There is no index" in said
    assert all(len(line) <= 100 for line in found.out.splitlines())


def test_status__of_unbonding_stake__says_when_and_then_that_it_can_be_withdrawn(town, operate, dear, node_id):
    town.by("dora").send(town.registry.request_unstake(node_id, MIN_STAKE + 7))
    release = town.registry.node(node_id).release_at
    waiting = operate("status", node_id)
    town.rpc("evm_increaseTime", 100)
    town.rpc("evm_mine")
    released = operate("status", node_id, "--json").json

    said = words(waiting.out)
    assert f"{MIN_STAKE + 7:,}, to be released on {moment(release)}" in said
    assert f"routed to no: its stake of {MIN_STAKE - 7:,} is below the least stake of {MIN_STAKE:,}" in said
    assert "stake too low" in said
    assert f"counterfoil node stake {node_id} 7" in said
    assert (released["unbonding"], released["release_at"]) == (str(MIN_STAKE + 7), release)
    assert released["improve"][-1] == {
        "sentence": f"{MIN_STAKE + 7:,} of unbonded stake can be withdrawn now.",
        "command": f"counterfoil node withdraw {node_id}",
    }


def test_status__with_an_index__tells_sessions_and_what_they_paid(town, operate, tmp_path):
    service = town.node("greta", MIN_STAKE, 10, "data:tides")
    greta = town.registry.service(service).node_id
    town.settle(town.route("client", category="data:tides"), "client", "greta", calls=4)
    unpaid = town.route("client", category="data:tides")
    town.by("greta").send(town.manager.settle(unpaid, 0, 0))
    town.by("client").send(town.reputation.rate(unpaid, 20))
    town.route("client", category="data:tides")
    town.route("client", category="data:tides")
    index.index_run(Settings(home=town.home, rpc_url=town.url))
    found = operate("status", greta, "--json").json
    said = words(operate("status", greta).out)

    block = town.chain.head().number
    assert found["index"] == {"block": block, "settled_sessions": 2, "paid": "40"}
    assert (found["active_sessions"], found["max_concurrent"], found["credit"]) == (2, "2", "40")
    assert (found["rating_sum"], found["rating_count"], found["unpaid_count"]) == (20, 1, 1)
    assert f"2 sessions, which paid 40 (index, block {block})" in said
    assert "20.0 (1), 1 of them unpaid" in said
    assert "any price" in said
    slots, low, money = found["improve"]
    assert slots["sentence"].startswith("All 2 slots are taken")
    assert low["sentence"].startswith("The rating is 20.0 of 100 over 1 rating,")
    assert money == {
        "sentence": "40 of earnings can be withdrawn now.",
        "command": f"counterfoil node withdraw {greta} --earnings",
    }


def healthy(_):
    return JSONResponse({"status": "ok"})


def test_status__with_a_probe__says_whether_the_endpoint_answers(town, operate, node_id):
    registry, dora = town.registry, town.by("dora")

    def about_the_endpoint(*options):
        found = operate("status", node_id, "--json", *options).json["improve"]
        return [one["sentence"] for one in found if one["command"] == f"counterfoil node set-endpoint {node_id} URL"]

    with serving(Starlette(routes=[Route("/health", healthy)])) as url:
        dora.send(registry.set_endpoint(node_id, url))
        (sentence,) = about_the_endpoint("--probe")
        assert sentence.startswith(f"Agents do not call the endpoint {url}: the host 127.0.0.1 is in a private network")
        assert about_the_endpoint("--probe", "--allow-private") == []
    silent = unused_url()
    dora.send(registry.set_endpoint(node_id, silent))
    (sentence,) = about_the_endpoint("--probe", "--allow-private")
    assert sentence.startswith(f"The endpoint {silent} does not answer /health: ")
    assert about_the_endpoint("--allow-private") == []


def test_status__without_a_probe__looks_no_name_up(town, operate, node_id, monkeypatch):
    town.by("dora").send(town.registry.set_endpoint(node_id, "https://nobody-there.invalid"))

    def look_up(*_, **__):
        raise AssertionError("a name was looked up")

    monkeypatch.setattr("counterfoil.agent.endpoint.socket", SimpleNamespace(getaddrinfo=look_up, SOCK_STREAM=1))
    found = operate("status", node_id, "--json")
    assert (found.code, "invalid" in str(found.json["improve"])) == (0, False)


def test_status__of_a_node_that_is_not_there__names_the_list(operate):
    found = operate("status", 999)

    assert (found.code, found.out, found.err) == (2, "", "There is no node 999: see `counterfoil nodes`.\n")


class Bent(BoundedProvider):
    """An RPC whose answers about logs are bent."""

    def __init__(self, url, bend):
        super().__init__(url)
        self._bend = bend

    def make_request(self, method, params):
        if method != "eth_getLogs":
            return super().make_request(method, params)
        return self._bend(params[0], lambda: super(Bent, self).make_request(method, params))


@pytest.fixture
def bent(town):
    """The registry through an RPC whose answers about logs go through a function."""
    with ExitStack() as stack:

        def registry(bend):
            chain = Chain(Bent(town.url, bend), town.chain.deployment)
            stack.callback(chain.close)
            return NodeRegistry(chain)

        yield registry


def test_listings__from_an_rpc_that_refuses_long_ranges__are_read_in_short_ones(town, dear, node_id, bent, monkeypatch):
    monkeypatch.setattr("counterfoil.chain.listings._STEP", 4)
    town.list("dora", node_id, 5, "data:waves")
    sizes = []

    def bend(wanted, ask):
        size = int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) + 1
        if size > 4:
            return {"jsonrpc": "2.0", "id": 1, "error": {"code": -32005, "message": "range too large"}}
        sizes.append(size)
        return ask()

    listed = services_of(bent(bend), node_id)

    assert listed == (Listed(dear, CATEGORY), Listed(town.registry.service_count(), "data:waves"))
    first = town.chain.deployment.contracts["NodeRegistry"].block
    assert sum(sizes) == town.chain.head().number - first + 1


def test_capabilities__switched_on_and_off__are_those_that_are_on(town, node_id):
    dora, registry = town.by("dora"), town.registry
    for name, enabled in (("b.v1", True), ("a.v1", True), ("b.v1", False)):
        dora.send(registry.set_capability(node_id, name, enabled))
    found = capabilities_of(registry, node_id)

    assert [name for name in found if name != "routing.v1"] == ["a.v1"]
    assert list(found) == sorted(found)


OTHER_NAME = CATEGORY.encode().hex(), b"data:wEather".hex()
NO_TEXT = CATEGORY.encode().hex(), b"data:\xffeather".hex()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: data.replace(*OTHER_NAME), "names another category than its id: use another RPC"),
        (lambda data: data.replace(*NO_TEXT), "cannot be read from the RPC's answer"),
        (lambda data: data[:66], "cannot be read: use another RPC"),
        (lambda data: "0x" + "f" * 64 + data[66:], "cannot be read: use another RPC"),
    ],
    ids=["other name", "no text", "cut", "far offset"],
)
def test_listings__of_a_log_that_no_registry_wrote__are_refused(bent, dear, node_id, change, sentence):
    def bend(_, ask):
        answer = ask()
        return answer | {"result": [log | {"data": change(log["data"])} for log in answer["result"]]}

    with pytest.raises(ChainError, match=sentence):
        services_of(bent(bend), node_id)
