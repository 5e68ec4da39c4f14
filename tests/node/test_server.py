"""A node over real HTTP on a real chain."""

import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from counterfoil.chain.typed_data import voucher as voucher_data
from counterfoil.node.server import MAX_BODY, voucher_headers
from counterfoil.node.vouchers import Voucher
from tests.support.chain import person
from tests.support.market import broken, market


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with market(tmp_path_factory.mktemp("node")) as built:
        built.good = built.node("olga")
        built.bad = built.node("ben", upstream=broken)
        yield built


@pytest.fixture
def opened(scene):
    return Opened(scene, scene.good)


class Gate:
    """A service that says when it was asked, and answers when it is told to."""

    def __init__(self):
        self.asked = threading.Event()
        self.answer = threading.Event()

    def __call__(self, _):
        self.asked.set()
        assert self.answer.wait(30)
        return b"{}"


def raising(_):
    raise ValueError("the service's own words")


class Opened:
    """One session with a node, and its client's calls."""

    def __init__(self, scene, service_id):
        self.scene, self.world = scene, scene.world
        receipt = self.world.decide("alice", pinned=service_id)
        self.session_id = self.world.open("alice", receipt)
        node_id = self.world.registry.service(service_id).node_id
        self.url = self.world.registry.node(node_id).endpoint
        self.price = self.world.registry.service(service_id).price
        self.node_id = node_id

    def voucher(self, amount, calls, signer="alice", session_id=None):
        session_id = session_id or self.session_id
        manager = self.world.manager
        data = voucher_data(self.world.chain.chain_id, manager.address, session_id, amount, calls)
        return Voucher(session_id, amount, calls, data.sign(person(signer)))

    def post(self, path, voucher, body=b"hello", **headers):
        return httpx.post(self.url + path, content=body, headers={**voucher_headers(voucher), **headers})

    def call(self, calls, **changes):
        return self.post("/call", self.voucher(self.price * calls, calls, **changes))

    def state(self):
        return self.world.manager.session(self.session_id)


def error(response):
    return response.status_code, response.json()["error"]["type"]


def test_call__with_the_next_voucher__is_served(opened):
    assert opened.call(1).json() == {"echo": "hello"}
    assert opened.call(2).json() == {"echo": "hello"}


def test_call__with_the_same_voucher_twice__is_served_once(opened):
    assert opened.call(1).status_code == 200
    assert error(opened.call(1)) == (402, "wrong_calls")


def test_call__signed_by_somebody_else__is_refused(opened):
    assert error(opened.call(1, signer="mallory")) == (402, "bad_signature")


def test_call__for_a_session_that_does_not_exist__is_refused(opened):
    assert error(opened.call(1, session_id="0x" + "00" * 32)) == (409, "unknown_session")


def test_call__for_another_nodes_session__is_refused(opened, scene):
    other = Opened(scene, scene.bad)
    assert error(opened.call(1, session_id=other.session_id)) == (409, "not_ours")


def test_call__after_a_request_to_close__is_refused(opened):
    opened.world.by("alice").send(opened.world.manager.request_close(opened.session_id))
    assert error(opened.call(1)) == (409, "not_open")


def test_call__above_the_deposit__is_refused_and_the_last_voucher_kept(opened):
    assert opened.call(1).status_code == 200
    above = opened.voucher(opened.state().deposit + 1, 2)
    assert error(opened.post("/call", above)) == (402, "above_deposit")
    assert opened.post("/settle", opened.voucher(opened.price, 1)).json()["paid"] == str(opened.price)


def test_call__whose_service_fails__charges_nothing_and_tells_nothing_of_the_cause(scene):
    opened = Opened(scene, scene.bad)
    answer = opened.call(1)
    assert error(answer) == (502, "upstream_failed")
    assert "broken on purpose" not in answer.text
    settled = opened.post("/settle", opened.voucher(0, 0))
    assert settled.json() == {"session_id": opened.session_id, "paid": "0", "calls": 0}
    assert (opened.state().status, opened.state().paid) == (3, 0)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("Counterfoil-Session", "0x12"),
        ("Counterfoil-Session", "0x" + "AB" * 32),
        ("Counterfoil-Amount", "-1"),
        ("Counterfoil-Amount", "1e3"),
        ("Counterfoil-Amount", "9" * 40),
        ("Counterfoil-Calls", "01"),
        ("Counterfoil-Signature", "0x" + "zz" * 65),
        ("Counterfoil-Signature", ""),
    ],
)
def test_call__with_a_malformed_header__names_it(opened, header, text):
    answer = opened.post("/call", opened.voucher(opened.price, 1), **{header: text})
    assert error(answer) == (400, "malformed")
    assert header in answer.json()["error"]["message"]


def test_call__with_a_body_over_the_limit__is_refused(opened):
    answer = opened.post("/call", opened.voucher(opened.price, 1), body=b"x" * (MAX_BODY + 1))
    assert error(answer) == (400, "malformed")
    assert opened.call(1).status_code == 200


def test_settle__after_two_calls__pays_the_operator_and_refunds_the_client(opened):
    world = opened.world
    before = world.manager.credit_of(world.by("olga").address), world.manager.credit_of(world.by("alice").address)
    assert opened.call(1).status_code == opened.call(2).status_code == 200
    done = opened.post("/settle", opened.voucher(opened.price * 2, 2))
    assert done.json() == {"session_id": opened.session_id, "paid": str(2 * opened.price), "calls": 2}
    after = world.manager.credit_of(world.by("olga").address), world.manager.credit_of(world.by("alice").address)
    assert (after[0] - before[0], after[1] - before[1]) == (2 * opened.price, 8 * opened.price)
    assert (opened.state().status, opened.state().paid, opened.state().calls) == (3, 2 * opened.price, 2)


def test_settle__asked_twice__says_the_same(opened):
    opened.call(1)
    first = opened.post("/settle", opened.voucher(opened.price, 1))
    assert opened.post("/settle", opened.voucher(opened.price, 1)).json() == first.json()


def test_settle__asked_by_a_stranger__ends_nothing(opened):
    answer = opened.post("/settle", opened.voucher(0, 0, signer="mallory"))
    assert error(answer) == (402, "bad_signature")
    assert opened.state().status == 1


def test_health__of_a_node__names_it(opened):
    assert httpx.get(opened.url + "/health").json() == {"node_id": 1, "status": "ok"}


@pytest.mark.parametrize(("method", "path"), [("GET", "/call"), ("POST", "/health"), ("POST", "/call/")])
def test_server__with_another_method_or_path__serves_nothing(opened, method, path):
    assert httpx.request(method, opened.url + path).status_code in (404, 405, 307)


def test_call__whose_service_raises_anything__is_a_failed_call(scene):
    opened = Opened(scene, scene.node("rita", upstream=raising))
    answer = opened.call(1)
    assert error(answer) == (502, "upstream_failed")
    assert "own words" not in answer.text
    assert error(opened.call(1)) == (502, "upstream_failed")


def test_settle__while_a_call_is_served__is_refused_and_the_call_is_paid(scene):
    gate = Gate()
    opened = Opened(scene, scene.node("gita", upstream=gate))
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(opened.call, 1)
        assert gate.asked.wait(30)
        assert error(opened.post("/settle", opened.voucher(0, 0))) == (409, "busy")
        assert error(opened.call(1)) == (409, "busy")
        gate.answer.set()
        assert call.result().status_code == 200
    assert opened.post("/settle", opened.voucher(0, 0)).json()["paid"] == str(opened.price)


def test_settle_due__of_a_session_that_its_client_closes__is_paid_before_it_ends_at_zero(scene, opened):
    assert opened.call(1).status_code == opened.call(2).status_code == 200
    scene.nodes["olga"].settle_due()
    assert opened.state().status == 1
    opened.world.by("alice").send(opened.world.manager.request_close(opened.session_id))
    scene.nodes["olga"].settle_due()
    assert (opened.state().status, opened.state().paid) == (3, 2 * opened.price)


def test_watch__of_a_session_that_expired__settles_it(scene, opened):
    assert opened.call(1).status_code == 200
    opened.world.rpc("evm_increaseTime", 3600)
    opened.world.rpc("evm_mine")
    stop = threading.Event()
    watching = threading.Thread(target=scene.nodes["olga"].watch, args=(stop, 0.01))
    watching.start()
    while opened.state().status != 3:
        assert watching.is_alive()
    stop.set()
    watching.join()
    assert opened.state().paid == opened.price


def test_call__of_a_node_that_was_handed_over__is_refused_since_nobody_here_could_settle_it(scene):
    service_id = scene.node("hana")
    world = scene.world
    node_id = world.registry.service(service_id).node_id
    world.by("hana").send(world.registry.transfer_node(node_id, world.by("ines").address))
    world.by("ines").send(world.registry.accept_node(node_id))
    assert error(Opened(scene, service_id).call(1)) == (409, "not_ours")
