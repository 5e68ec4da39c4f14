"""Faults under real runs: afterwards chain, nodes' books and the agent's journal agree on every unit of money."""

import random
import re
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace

import pytest
from starlette.responses import JSONResponse, RedirectResponse

from counterfoil.agent.calling import one_step
from counterfoil.agent.journal import CallRow, Journal, Outcome, SessionRow, SessionState
from counterfoil.agent.record import record_of
from counterfoil.agent.resuming import conclude_closed, go_on
from counterfoil.agent.runner import Runner
from counterfoil.agent.wallet import Wallet
from counterfoil.agent.workflow import read
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.chain.contracts import Write
from counterfoil.chain.errors import ChainError
from tests.support import liar as lies
from tests.support import upstream as services
from tests.support.books import Books
from tests.support.market import Market, market
from tests.support.wire import wire

SEED = 1
PRICE = 100
DAY = 86_400
NOWHERE = "0x000000000000000000000000000000000000dEaD"
PATIENCE = 60
CHALLENGE = 61


class Corner:
    """One test's part of the market: a category, a client and operators of its own."""

    def __init__(self, scene, name, store=None):
        self.scene, self.world, self.name, self.store = scene, scene.world, name, store
        self.category = f"data:{name}"
        self.operators = []

    def node(self, **options):
        """Serve a node of this category, and give its operator."""
        self.operators.append(f"{self.name}-{len(self.operators)}")
        self.scene.node(self.operators[-1], price=PRICE, category=self.category, **options)
        return self.operators[-1]

    def endpoint(self, operator, url):
        node_id = self.world.registry.node_count()
        self.world.by(operator).send(self.world.registry.set_endpoint(node_id, url))

    def desk(self, **changes):
        """The client's tools, by the chain alone; the books are kept from here on."""
        self.world.by(self.name)
        self.books = Books(self.world, self.scene.settings.home, self.name, self.operators)
        return self.scene.desk(self.name, self.store, **changes)

    def run(self, desk, calls=1, **changes):
        """A run of one step; gives its record."""
        step = {"category": self.category, "input": {"asked": self.name}, "calls": calls, **changes}
        return self.make(desk, one_step(None, **step))

    def make(self, desk, workflow):
        runner = WorkflowRunner(desk, Runner(desk), lambda _: None)
        return record_of(desk.journal, runner.go(runner.start(workflow)))

    def finish(self, desk):
        """Go on until nothing is left, and see that the books agree."""
        deadline = time.monotonic() + PATIENCE
        while True:
            conclude_closed(desk)
            go_on(desk, lambda _: None)
            if not self.books.left() and self.is_settled():
                break
            assert time.monotonic() < deadline, self.books.left()
        assert (self.books.wrong(), self.books.lost()) == ([], 0)

    def is_settled(self):
        """Whether every session that is on chain is settled: a node follows a reorg in a moment."""
        return all(self.world.manager.session(one).status == 3 for one, _ in self.books.openings())

    def let_challenge_pass(self):
        self.world.rpc("evm_increaseTime", CHALLENGE)
        self.world.rpc("evm_mine")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with market(tmp_path_factory.mktemp("faults")) as made:
        yield made


@pytest.fixture
def corner(shared):
    """A corner whose nodes end with the test."""
    with ExitStack() as stack:
        yield Corner(Market(shared.world, shared.settings, stack), f"corner-{shared.world.registry.node_count()}")


@pytest.fixture
def up():
    with services.upstream() as made:
        yield made


def sessions(record):
    return [session for step in record["steps"] for session in step["sessions"]]


class Watched(Journal):
    """A journal that does something once, right after a row is written that a test waits for."""

    def __init__(self, path, is_it, act):
        super().__init__(path)
        self._is_it, self._act = is_it, act

    def put(self, row):
        super().put(row)
        if self._act is not None and self._is_it(row):
            act, self._act = self._act, None
            act(row)


class Asked:
    """Notes that do something once, when they are asked: after the rating, before the attestation."""

    def __init__(self, act):
        self._act = act

    def find(self, *_):
        act, self._act = self._act, lambda: None
        act()


def watched(desk, is_it, act):
    if is_it is _rated:
        return replace(desk, notes=Asked(lambda: act(None)))
    return replace(desk, journal=Watched(desk.journal._database.path, is_it, act))


# --- reorgs


def _opened(row):
    return isinstance(row, SessionRow) and row.state is SessionState.OPEN


def _in_mid_calls(row):
    return isinstance(row, CallRow) and row.calls == 2 and row.outcome is Outcome.PENDING


def _settled(row):
    return isinstance(row, SessionRow) and row.state is SessionState.CALLED and row.paid > 0 and row.score is None


def _rated(row):
    """Not seen in a row: the rating is written down before it is sent."""
    raise NotImplementedError


@pytest.mark.parametrize(
    ("instant", "depth"), [(_opened, 1), (_in_mid_calls, 1), (_settled, 1), (_settled, 2), (_rated, 1), (_rated, 3)]
)
def test_run__with_a_reorg_under_its_session__ends_with_that_session_and_no_second_deposit(corner, instant, depth):
    corner.node()
    desk = corner.desk()
    reorg = watched(desk, instant, lambda _: corner.world.reorg(depth))
    with suppress(ChainError):  # what a reorg undoes in mid-word is gone on with
        corner.run(reorg, calls=3)
    corner.finish(desk)
    (row,) = corner.books.rows()
    assert (row.paid, row.score, len(corner.books.openings())) == (3 * PRICE, 100, 1)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_resume__after_a_reorg_of_a_session_that_was_done__does_again_what_was_undone(corner, depth):
    corner.node()
    desk = corner.desk()
    record = corner.run(desk, calls=2)
    corner.world.reorg(depth)
    corner.finish(desk)
    (row,) = corner.books.rows()
    assert (record["status"], row.paid, row.score) == ("done", 2 * PRICE, 100)


def test_run__with_a_reorg_below_its_snapshot__draws_anew(corner):
    corner.node()
    desk = corner.desk()
    corner.world.rpc("anvil_mine", "0x3")
    record = corner.run(watched(desk, _in_mid_calls, lambda _: corner.world.reorg(3)), calls=2)
    corner.finish(desk)
    assert [row.state for row in corner.books.rows()] == [SessionState.VOID, SessionState.DONE]
    assert (record["status"], record["paid"]) == ("done", str(2 * PRICE))


# --- the RPC


@pytest.mark.parametrize("instant", range(6))
def test_run__with_its_rpc_dead_in_the_middle__blames_nobody_and_is_finished_later(corner, instant):
    rng = random.Random(f"rpc/{SEED}/{instant}")
    corner.node()
    with wire(corner.world.url) as line:
        desk = corner.desk(rpc_url=line.url, request_seconds=2)
        line.passed = 0
        corner.run(desk, calls=2)
        whole = line.passed
        at = rng.randint(1, whole * 9 // 10)  # how often it asks whether something is mined varies
        line.cut_after(at)
        with pytest.raises(ChainError):
            corner.run(desk, calls=2)
        assert len(desk.journal.unfinished(desk.address)) == 1, f"seed {SEED}: cut after {at} of {whole}"
        line.mend()
        corner.finish(desk)
        assert {run.status for run in corner.books.runs()} == {"done"}
    for row in corner.books.rows():
        assert row.failure == "", f"seed {SEED}: cut after {at} of {whole}"
        assert row.state is SessionState.VOID or row.why.startswith("2 of 2 calls worked")


def test_run__with_the_node_without_a_chain_for_a_moment__waits_for_it(corner, up):
    with wire(corner.world.url) as line:
        corner.node(upstream=up.url, rpc_url=line.url, request_seconds=2)
        desk = corner.desk()

        def cut(_):
            line.cut()
            threading.Timer(1, line.mend).start()

        record = corner.run(watched(desk, _in_mid_calls, cut), calls=3)
        corner.finish(desk)
    assert (record["status"], [one["failure"] for one in sessions(record)]) == ("done", [""])


# --- clocks


@pytest.mark.parametrize("skew", [-DAY, DAY])
def test_run__with_a_clock_that_is_wrong_by_a_day__is_done_all_the_same(tmp_path, skew):
    with market(tmp_path, "--timestamp", str(int(time.time()) - skew)) as scene:
        corner = Corner(scene, "skewed")
        operator = corner.node()
        scene.nodes[operator].settler._clock = lambda: 0  # the node's own clock is right
        desk = corner.desk()
        assert abs(time.time() - skew - corner.world.chain.head().timestamp) < DAY / 2
        record = corner.run(desk, calls=3)
        corner.finish(desk)
    assert (record["status"], record["paid"], len(sessions(record))) == ("done", str(3 * PRICE), 1)


# --- upstreams


async def _redirect(_):
    return RedirectResponse("http://127.0.0.2:9/elsewhere", 307)


async def _error_body(_):
    return JSONResponse({"error": {"message": "no such symbol"}})


@pytest.mark.parametrize(
    ("behave", "paid"),
    [
        pytest.param(lambda up: services.hanging(up.gate()), 0, id="hangs"),
        pytest.param(lambda _: services.claiming(500, b'{"half":'), 0, id="answers half"),
        pytest.param(lambda _: services.claiming(3, b'{"longer": "than it says"}'), 0, id="says too short a length"),
        pytest.param(lambda _: _error_body, PRICE, id="200 with an error body"),
        pytest.param(lambda _: services.answering(b'{"cut": '), PRICE, id="200 with half a document"),
        pytest.param(lambda _: services.streaming(b'{"a', b'b":', services.BreakError()), 0, id="streams half"),
        pytest.param(lambda _: services.answering(b"oh", 500), 0, id="500"),
        pytest.param(lambda _: services.answering(b"oh", 503), 0, id="503"),
        pytest.param(lambda _: services.answering(b"no", 404), 0, id="404"),
        pytest.param(lambda _: services.answering(b"no", 401), 0, id="401"),
        pytest.param(lambda _: _redirect, 0, id="redirects to another host"),
    ],
)
def test_run__with_an_upstream_that_fails__pays_for_what_the_node_charged_alone(corner, up, behave, paid):
    up.behave = behave(up)
    corner.node(upstream=up.url, node_upstream_seconds=0.5, node_call_seconds=1)
    desk = corner.desk(agent_call_seconds=5)
    record = corner.run(desk, calls=2)
    corner.finish(desk)
    (session,) = sessions(record)
    assert (record["status"], record["steps"][0]["output"], session["score"]) == ("failed", None, 0)
    assert (session["paid"], bool(session["failure"])) == (str(paid), True)


def test_run__with_an_upstream_that_fails_now_and_then__pays_for_each_call_once(corner, up):
    rng = random.Random(f"now and then/{SEED}")

    async def behave(request):
        return await (services.echo(request) if rng.random() < 0.8 else services.answering(b"oh", 500)(request))

    up.behave = behave
    for _ in range(2):
        corner.node(upstream=up.url)
    desk = corner.desk()
    records = [corner.run(desk, calls=3) for _ in range(5)]
    corner.finish(desk)
    assert {"done"} <= {record["status"] for record in records} <= {"done", "failed"}, f"seed {SEED}"
    for record in records:
        output = [{"echo": f'{{"asked":"{corner.name}"}}'}] * 3
        assert record["steps"][0]["output"] == (output if record["status"] == "done" else None)


# --- nodes that are none of ours


@pytest.mark.parametrize("call", [lies.nothing, lies.reset, lies.huge, lies.endless, lies.slow, lies.others])
def test_run__with_a_node_that_lies__pays_nothing_and_gets_its_deposit_back(corner, call):
    operator = corner.node(up=False)
    with lies.liar(call) as node:
        corner.endpoint(operator, node.url)
        desk = corner.desk(agent_call_seconds=1)
        record = corner.run(desk, judge={"matches": corner.name})
        (session,) = sessions(record)
        assert (record["status"], session["state"]) == ("failed", "closing")
        assert node.vouchers
    corner.let_challenge_pass()
    corner.finish(desk)
    (row,) = corner.books.rows()
    assert (row.paid, row.score) == (0, 0)


def test_run__with_a_node_that_settles_for_less__counts_what_the_chain_says(corner):
    operator = corner.node(up=False)

    def settle(handler):
        first = handler.node.vouchers[0]
        done = corner.world.manager.settle(first.session_id, first.amount, first.calls, first.signature)
        corner.world.by(operator).send(done)
        lies.say(handler, b"{}")

    with lies.liar(lies.right, settle) as node:
        corner.endpoint(operator, node.url)
        desk = corner.desk()
        record = corner.run(desk, calls=3)
    corner.finish(desk)
    assert (record["status"], record["paid"]) == ("done", str(PRICE))


def test_run__with_a_node_that_never_settles__ends_the_session_itself(corner):
    operator = corner.node(up=False)
    with lies.liar(lies.right) as node:
        corner.endpoint(operator, node.url)
        desk = corner.desk()
        record = corner.run(desk, calls=3)
    assert (record["status"], sessions(record)[0]["state"]) == ("done", "closing")
    corner.let_challenge_pass()
    corner.finish(desk)
    (row,) = corner.books.rows()
    assert (row.paid, row.score) == (0, 100)


def test_run__with_a_node_that_settles_in_mid_session__goes_on_in_another(corner):
    operator = corner.node(node_settle_above=PRICE)
    desk = corner.desk()
    book = corner.scene.nodes[operator].book

    def wait(row):
        deadline = time.monotonic() + PATIENCE
        (session,) = [one for one in corner.books.rows() if one.reservation_id == row.reservation_id]
        while str(book.record(session.session_id).stage) == "open":
            assert time.monotonic() < deadline

    def is_second(row):
        return isinstance(row, CallRow) and row.calls == 2 and row.outcome is Outcome.WORKED

    record = corner.run(watched(desk, is_second, wait), calls=5)
    corner.finish(desk)
    assert (record["status"], record["paid"]) == ("done", str(5 * PRICE))
    assert record["steps"][0]["output"] == [{"echo": f'{{"asked":"{corner.name}"}}'}] * 5
    assert len(sessions(record)) >= 2
    for session in sessions(record):
        assert session["failure"] == ""
        assert re.match(r"(\d+) of \1 calls? worked", session["why"])


# --- the wallet


class KilledError(BaseException):
    """What a kill is within one process."""


class Dying(Wallet):
    """A wallet whose process dies before it sends what it signed."""

    def submit(self, _):
        raise KilledError


class Early(Journal):
    """A journal as it was before another run wrote into it, when it is asked for the latest receipt the first time."""

    asked = False

    def last_decision(self, client):
        first, self.asked = not self.asked, True
        return None if first else super().last_decision(client)


def test_run__that_signs_the_same_opening_as_one_that_was_killed__opens_a_session_of_its_own(corner):
    corner.node()
    desk = corner.desk()
    wallet = Dying(desk.chain, desk.wallet.account, corner.scene.settings.home / "agent")
    with pytest.raises(KilledError):
        corner.run(replace(desk, wallet=wallet))
    (killed,) = corner.books.rows()
    record = corner.run(replace(desk, journal=Early(desk.journal._database.path)))
    corner.finish(desk)
    assert (record["status"], killed.state) == ("done", SessionState.INTENDED)
    done = [row.session_id for row in corner.books.rows() if row.state is SessionState.DONE]
    assert len(set(done)) == len(done) == 2


def test_run__of_a_wallet_that_runs_out_between_two_steps__says_so_and_pays_for_the_first(corner):
    corner.node()
    sender = corner.world.by(corner.name)
    more = corner.world.token.balance_of(sender.address) - PRICE * 3 // 2
    sender.send(Write("Token.transfer", corner.world.token.contract.functions.transfer(NOWHERE, more)))
    desk = corner.desk()
    text = f"""
name: two
steps:
  - {{id: one, category: "{corner.category}", input: 1}}
  - {{id: two, category: "{corner.category}", input: 2}}
"""
    record = corner.make(desk, read(text.encode(), "here"))
    corner.finish(desk)
    assert (record["status"], record["paid"]) == ("failed", str(PRICE))
    assert "send it 50 more" in record["reason"]
