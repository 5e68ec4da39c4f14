"""kill -9 of a serving node at random instants: what must hold afterwards, whatever the instant was.

`play` has a client call as fast as it can while the node is killed and started again, and judges after each kill.
"""

import asyncio
import json
import random
import threading
from dataclasses import dataclass, field

import httpx
from starlette.responses import StreamingResponse

from counterfoil.node.node import open_book
from tests.support.caller import Caller, until
from tests.support.node_process import NodeProcess
from tests.support.upstream import upstream

MAX_RUN_SECONDS = 0.6
"""A kill comes so long after the node answered, at the most: some twenty calls fit in between."""
CALLS = 10
"""What a session's deposit is enough for."""
PIECES = 4
PIECE_SECONDS = 0.002
"""How long the service takes for a piece, so that some kills come in mid-answer."""


@dataclass
class Report:
    """What was done, and what was wrong."""

    seed: int
    kills: int = 0
    calls: int = 0
    retries: int = 0
    replays: int = 0
    cut: int = 0
    sessions: int = 0
    settled_under_a_kill: int = 0
    wrong: list = field(default_factory=list)

    def check(self, right, what):
        """Note what does not hold."""
        if not right:
            self.wrong.append(f"{what} (seed {self.seed}, kill {self.kills})")


@dataclass
class Course:
    """One session as its client knows it: the whole answers by number, and the number that is asked now.

    `is_asked` while that call has no answer: it may be paid, so that it is asked again before anything else.
    """

    caller: Caller
    whole: dict = field(default_factory=dict)
    asking: int = 1
    is_asked: bool = False
    settling: bool = False
    paid: int | None = None


class Client:
    """Calls until it is told to stop, or a call breaks: that one it asks again later."""

    def __init__(self, caller_of, report, rng):
        self._caller_of = caller_of
        self._report = report
        self._rng = rng
        self.course = None
        self.done = []

    def run(self, stop):
        """One stretch between a start of the node and its end."""
        while not stop.is_set():
            if self.course is None:
                self.course = Course(self._caller_of())
                self._report.sessions += 1
            try:
                self._step(self.course)
            except httpx.TransportError:
                return

    def _step(self, course):
        if not course.is_asked and (course.settling or course.asking > self._rng.randint(1, CALLS)):
            course.settling = True
            self._settle(course)
            return
        number, course.is_asked = course.asking, True
        answer = course.caller.call(number, body=f"{course.caller.session_id} {number}".encode())
        self._report.check(answer.status_code == 200, f"call {number} was answered {answer.status_code} {answer.text}")
        self._report.calls += 1
        self._report.replays += "counterfoil-replayed" in answer.headers
        course.whole[number] = answer.content
        course.asking += 1
        course.is_asked = False

    def _settle(self, course):
        answer = course.caller.settle()
        self._report.check(answer.status_code == 200, f"settling was answered {answer.status_code} {answer.text}")
        course.paid = int(answer.json()["paid"])
        self.done.append(course)
        self.course = None


def play(world, seed, kills, home, operator="kim"):
    """Kill a node so many times while it serves, and give the report."""
    rng, report = random.Random(seed), Report(seed)
    with upstream() as up:
        up.behave = _counting()
        service_id = world.node(operator, 5_000_000, 100)
        node = NodeProcess(home, world.url, operator, world.registry.service(service_id).node_id, up.url)
        client = Client(lambda: Caller(world, service_id, "alice", node.url), report, rng)
        try:
            for _ in range(kills):
                _one_kill(node, client, report, rng)
            node.start()
            _finish(client, report, up)
        finally:
            node.kill()
    return report


def _one_kill(node, client, report, rng):
    node.start()
    _ask_again(client.course, report)
    stop = threading.Event()
    calling = threading.Thread(target=client.run, args=(stop,))
    calling.start()
    calling.join(rng.uniform(0, MAX_RUN_SECONDS))
    node.kill()
    report.kills += 1
    stop.set()
    calling.join()
    _judge(node, client.course, report)


def _judge(node, course, report):
    """What the dead node's book holds: every call that was answered whole, and at most the one that was asked."""
    if course is None:
        return
    book = open_book(course.caller.world.chain, node.home, node.node_id)
    record = book.record(course.caller.session_id)
    book.close()
    kept = record.payable if record else None
    calls, amount = (kept.calls, kept.amount) if kept else (0, 0)
    whole = max(course.whole, default=0)
    report.check(calls >= whole, f"call {whole} was answered whole and {calls} calls are paid")
    report.check(calls <= course.asking, f"{calls} calls are paid and {course.asking} was asked last")
    report.check(amount == calls * course.caller.price, f"{calls} calls are paid with {amount}")
    report.cut += calls == whole
    report.settled_under_a_kill += course.settling


def _ask_again(course, report):
    """The last whole answer is there once more, the same; and it is not charged again."""
    if course is None or not course.whole:
        return
    number = max(course.whole)
    answer = course.caller.call(number, body=f"{course.caller.session_id} {number}".encode())
    report.retries += 1
    if answer.status_code == 402 and answer.json()["error"]["type"] == "wrong_calls":
        # The next call was kept before the kill, so that this one is no longer the last: that one is there.
        answer = course.caller.call(number + 1, body=f"{course.caller.session_id} {number + 1}".encode())
        report.check(answer.headers.get("counterfoil-replayed") == "true", f"call {number + 1} is kept, not replayed")
        return
    report.check(answer.headers.get("counterfoil-replayed") == "true", f"call {number} was not replayed")
    report.check(
        answer.content == course.whole[number], f"call {number} was answered otherwise when it was asked again"
    )


def _finish(client, report, up):
    """End the last session, and compare what the chain paid with what was answered."""
    course = client.course
    if course is not None:
        client.run(_After(course))
    for course in client.done:
        state = until(lambda one=course: (found := one.caller.state()).status == 3 and found)
        served = max(course.whole, default=0)
        report.check(state.paid == served * course.caller.price, f"{state.paid} was paid for {served} calls")
        report.check((state.paid, state.calls) == (course.paid, served), "the node said something else than the chain")
        report.check(sorted(course.whole) == [*range(1, served + 1)], "a call is missing")
        report.check(len(set(course.whole.values())) == served, "two calls have one answer")


class _After:
    """Set once a session is done."""

    def __init__(self, course):
        self._course = course

    def is_set(self):
        return self._course.paid is not None


def _counting():
    """A service whose every answer is another, in some pieces."""
    lock, count = threading.Lock(), iter(range(10**9))

    async def behave(request):
        with lock:
            number = next(count)
        asked = (await request.body()).decode()

        async def parts():
            for piece in range(PIECES):
                await asyncio.sleep(PIECE_SECONDS)
                yield json.dumps({"asked": asked, "answer": number, "piece": piece}).encode() + b"\n"

        return StreamingResponse(parts(), media_type="application/x-ndjson")

    return behave
