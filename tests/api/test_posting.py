"""Records that are posted instead of attested: each refusal names its rule, and what is taken counts once."""

import threading
from contextlib import closing
from dataclasses import replace
from functools import partial

import httpx
import pytest

from counterfoil import posting
from counterfoil.api.app import create_app
from counterfoil.api.posting import THREADS
from counterfoil.chain.contracts import ExperienceLedger, ExperienceRecord
from counterfoil.chain.typed_data import experience
from counterfoil.chain.wallets import WalletSignatures
from counterfoil.receipt_store import ReceiptStore
from indexer import query
from indexer.query import open_store
from indexer.store.writer import open_writer
from tests.api.test_services import wait_until
from tests.indexer.model import ADDRESSES, CHAIN_ID, OPERATOR, Chain, attested, listed, load, opened, registered
from tests.indexer.model import session_id as model_session
from tests.indexer.model import settled as settled_event
from tests.support.chain import person
from tests.support.market import market, run, serving

ALICE = person("alice")
CLIENT = ALICE.address.lower()
SECP256K1_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def record(**other):
    values = {
        "session_id": model_session(1), "tool": "curl", "need": "data:crypto", "task": "bitcoin price", "worked": True,
        "calls": 3, "failures": 1, "judge_score": 90, "latency_ms": 800, "cost": 30, "message": "", "note": "quick",
    }  # fmt: skip
    return ExperienceRecord(**values | other)


def signed(given, chain_id=CHAIN_ID, ledger=ADDRESSES["ExperienceLedger"], account=ALICE):
    return experience(chain_id, ledger, given).sign(account)


def body(given, signature, service_id=1, **other):
    judge = None if given.judge_score == 255 else given.judge_score
    fields = {name: getattr(given, name) for name in given.__dataclass_fields__}
    said = {
        "service_id": service_id,
        "cost": str(given.cost),
        "judge_score": judge,
        "signature": "0x" + signature.hex(),
    }
    return fields | said | other


# --- the rules, over an index in memory's chain


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Sessions settled but for 2, which is open; 3 is the operator's own. Each paid 40 for 4 calls."""
    chain = Chain()
    chain.append(*registered(1), listed(1, 1), listed(2, 1))
    clients = {1: CLIENT, 2: CLIENT, 3: OPERATOR, 4: CLIENT, 5: CLIENT}
    chain.append(*(opened(number, client=client) for number, client in clients.items()))
    chain.append(*(settled_event(number, client=clients[number]) for number in (1, 3, 4, 5)))
    chain.append(attested(4, tool="chart", cost=25))
    with open_writer(tmp_path_factory.mktemp("posting") / "index.sqlite", chain.deployment()) as writer:
        load(writer, chain)
        yield chain, writer


@pytest.fixture(scope="module")
def api(index, tmp_path_factory):
    with (
        serving(create_app(index[1].store, ReceiptStore(tmp_path_factory.mktemp("receipts")))) as url,
        httpx.Client(base_url=url) as client,
    ):
        yield client


def refused(answer, rule, words):
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (422, "urn:counterfoil:problem:refused"), problem
    assert (problem["rule"], words in problem["detail"]) == (rule, True), problem


REFUSALS = {
    "empty tool": ("EL-9", record(tool=""), "tool is empty"),
    "tool of 65 bytes": ("EL-9", record(tool="ü" * 32 + "x"), "65 bytes, more than 64"),
    "note of 281 bytes": ("EL-9", record(note="é" * 140 + "x"), "281 bytes, more than 280"),
    "more failures than calls": ("EL-13", record(failures=4), "4 calls failed of 3"),
    "unknown session": ("EL-2", record(session_id="0x" + "77" * 32), "no session"),
    "open session": ("EL-2", record(session_id=model_session(2)), "not settled"),
    "own node": ("EL-5", record(session_id=model_session(3)), "own operator"),
    "attested before": ("EL-6", record(session_id=model_session(4), tool="chart", cost=0), "has a record of the tool"),
    "above what was paid": ("EL-7", record(cost=41), "costs 41, more than the 40 left"),
    "above what attested ones left": (
        "EL-7",
        record(session_id=model_session(4), cost=16),
        "costs 16, more than the 15 left",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_post__of_a_record_that_breaks_a_rule__names_the_rule(api, case):
    rule, given, words = REFUSALS[case]
    refused(api.post("/experience", json=body(given, signed(given))), rule, words)


def test_post__for_another_service_than_the_sessions__is_refused(api):
    refused(
        api.post("/experience", json=body(record(), signed(record()), service_id=2)), "EL-10", "with service 1, not 2"
    )


def high(signature):
    """The other signature of the same key over the same message."""
    s = SECP256K1_ORDER - int.from_bytes(signature[32:64], "big")
    return signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])


@pytest.mark.parametrize(
    "signature",
    [
        signed(record(), account=person("mallory")),
        signed(record(note="other")),
        signed(record(), chain_id=CHAIN_ID + 1),
        signed(record(), ledger=ADDRESSES["SessionManager"]),
        high(signed(record())),
        signed(record())[:64] + b"\x00",
        signed(record()) + b"\x00",
        b"\x00",
    ],
    ids=["another's", "another record", "another chain", "another contract", "high s", "v of 0", "66 bytes", "1 byte"],
)
def test_post__with_a_signature_that_the_ledger_would_not_take__is_refused(api, signature):
    refused(api.post("/experience", json=body(record(), signature)), "EL-3", "not by the key of the client")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cost": 3}, "cost: Input should be a valid string"),
        ({"cost": "-3"}, "cost: String should match pattern"),
        ({"calls": 2**32}, "calls: Input should be less than"),
        ({"calls": "3"}, "calls: Input should be a valid integer"),
        ({"worked": 1}, "worked: Input should be a valid boolean"),
        ({"judge_score": 101}, "judge_score: Input should be less than or equal to 100"),
        ({"session_id": "0x12"}, "session_id: String should match"),
        ({"signature": "0x123"}, "signature: String should match"),
        ({"note": "x" * 281}, "note: String should have at most 280"),
        ({"extra": 1}, "extra: Extra inputs are not permitted"),
    ],
)
def test_post__of_a_malformed_body__says_what_is_wrong(api, given, words):
    answer = api.post("/experience", json=body(record(), signed(record())) | given)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:counterfoil:problem:bad-parameter")
    assert words in answer.json()["detail"]


def test_post__of_good_records__takes_them_until_the_session_has_no_room(index, api):
    chain, writer = index
    first, second = record(), record(tool="chart", cost=10, judge_score=255, note="a\x00b")
    for given in (first, second):
        answer = api.post("/experience", json=body(given, signed(given)))
        assert (answer.status_code, answer.json()["counts_from"]) == (201, chain.head + 1), answer.text
    refused(api.post("/experience", json=body(first, signed(first))), "EL-6", "tool curl already")
    more = record(tool="map", cost=1)
    refused(api.post("/experience", json=body(more, signed(more))), "EL-7", "costs 1, more than the 0 left")
    before = api.get("/services/1/experience").json()
    chain.append()
    load(writer, chain, first=chain.head)
    after = api.get("/services/1/experience").json()["experience"]["needs"]
    assert [row["tool"] for row in before["experience"]["needs"]] == ["chart"]
    groups = {(row["tool"], row["label"]): (row["runs"], row["judge_score"]) for row in after}
    assert groups["curl", "data:crypto"] == (1, "90")
    assert groups["chart", "data:crypto"] == (1, None)


def test_post__of_more_records_than_calls__is_refused(api):
    taken = [record(session_id=model_session(4), tool=f"tool {number}", cost=0) for number in range(4)]
    answers = [api.post("/experience", json=body(given, signed(given))) for given in taken]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 422]
    refused(answers[-1], "EL-8", "made 4 calls and has 4 records")


def test_post__of_more_records_than_are_kept_of_a_session__is_refused(api, monkeypatch):
    monkeypatch.setattr(posting, "MAX_POSTED", 2)
    given = record(session_id=model_session(5), cost=0)
    for tool in ("one", "two"):
        assert api.post("/experience", json=body(replace(given, tool=tool), signed(replace(given, tool=tool))))
    more = replace(given, tool="three")
    refused(api.post("/experience", json=body(more, signed(more))), "limit", "attest it on chain")


def test_post__while_a_chain_lets_all_wallets_wait__holds_up_no_other_answer(index, tmp_path):
    asked, release = [], threading.Event()

    def slow(*_):
        asked.append(1)
        release.wait(20)
        return False

    app = create_app(index[1].store, ReceiptStore(tmp_path), slow)
    given = body(replace(record(session_id=model_session(5)), tool="slow", cost=0), b"\x00")
    with serving(app) as url, httpx.Client(base_url=url, timeout=30) as client:
        send = partial(httpx.post, f"{url}/experience", json=given, timeout=30)
        posters = [threading.Thread(target=send) for _ in range(20)]
        for poster in posters:
            poster.start()
        wait_until(lambda: len(asked) == THREADS)
        assert client.get("/nodes").status_code == 200
        assert len(asked) == THREADS
        release.set()
        for poster in posters:
            poster.join()
    assert len(asked) == len(posters)


def test_post__with_an_empty_signature__is_for_the_wallet_to_judge(index, tmp_path):
    with serving(create_app(index[1].store, ReceiptStore(tmp_path), lambda *_: True)) as url:
        given = body(record(session_id=model_session(5), tool="empty", cost=0), b"")
        assert httpx.post(f"{url}/experience", json=given).status_code == 201


# --- on a real chain


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Alice had one job of four calls done, and attested one tool."""
    with market(tmp_path_factory.mktemp("posting")) as built:
        built.node("olga", price=100, stake=5_000_000)
        store = built.follow()
        done = run(
            built.desk("alice", store), category="data:crypto-price", need="data:crypto", task="bitcoin price",
            tool="quote", service_id=1, input={"symbol": "BTC"}, calls=4,
        )  # fmt: skip
        built.session_id = done["steps"][0]["sessions"][-1]["session_id"]
        built.store = store
        built.ledger = ExperienceLedger(built.world.chain)
        yield built


@pytest.fixture(scope="module")
def served(scene):
    with (
        closing(WalletSignatures(scene.settings)) as wallets,
        open_store(scene.settings.database_url()) as store,
        serving(create_app(store, scene.world.receipts, wallets)) as url,
        httpx.Client(base_url=url) as client,
    ):
        yield client


def catch_up(scene):
    wait_until(lambda: query.as_of(scene.store).block == scene.world.chain.head().number)


def runs(served, tool):
    needs = served.get("/services/1/experience").json()["experience"]["needs"]
    return sum(row["runs"] for row in needs if row["tool"] == tool)


def test_posted_record__on_a_real_chain__counts_from_the_next_block_and_once_when_it_is_attested(scene, served):
    given = record(session_id=scene.session_id, tool="curl", cost=0, calls=2, failures=0)
    signature = experience(scene.world.chain.chain_id, scene.ledger.address, given).sign(ALICE)
    catch_up(scene)
    assert served.post("/experience", json=body(given, signature)).status_code == 201
    assert runs(served, "curl") == 0
    scene.world.rpc("anvil_mine", "0x1")
    catch_up(scene)
    assert runs(served, "curl") == 1
    scene.world.by("olga").send(scene.ledger.attest(given, signature))
    catch_up(scene)
    assert runs(served, "curl") == 1
    refused(served.post("/experience", json=body(given, signature)), "EL-6", "already")


APPROVES = "0x631626ba7e60e01b5f5260205ff3"  # answers every call with ERC-1271's magic word


def test_post__of_a_wallet_contracts_client__asks_the_ledger(scene, served):
    given = record(session_id=scene.session_id, tool="wallet", cost=0, calls=2, failures=0)
    catch_up(scene)
    refused(served.post("/experience", json=body(given, b"any")), "EL-3", "not one of the client")
    code = scene.world.chain.code(CLIENT)
    scene.world.rpc("anvil_setCode", CLIENT, APPROVES)
    try:
        assert served.post("/experience", json=body(given, b"any")).status_code == 201
    finally:
        scene.world.rpc("anvil_setCode", CLIENT, "0x" + code.hex())
