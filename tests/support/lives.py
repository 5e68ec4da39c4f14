"""A market whose agent and nodes are real processes that can be killed at any instant, and a judge of its books.

Beside the books, which have to agree on every unit, what came out of the runs has to be right, and what was charged
was served.
"""

import json
import random
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import httpx
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from counterfoil.agent.record import record_of
from counterfoil.demo.processes import free_ports
from tests.sim.forge import Forge
from tests.support.books import SETTLED, Books
from tests.support.chain import CATEGORY, person
from tests.support.market import market, serving

CLIENT = "alice"
OPERATORS = ("olga", "otto")
PRICE = 100
PATIENCE = 60
RESUMES = 8
"""How often an agent may have to be resumed until nothing is left."""
AGENT = ("counterfoil.cli.agent", "counterfoil.agent.plan")
NODE = ("counterfoil.cli.node_serve", "counterfoil.node.serving", "counterfoil.node.node")
WORKFLOW = """
name: errand-{number}
steps:
  - {{id: first, category: "{category}", input: {{errand: {number}, step: first}}, calls: 2}}
  - {{id: second, category: "{category}", input: "errand {number} after ${{first}}"}}
  - {{id: third, category: "{category}", input: {{errand: {number}, step: third}}, calls: 2}}
"""


class NotRightError(AssertionError):
    """Something is not as it has to be."""


@dataclass
class Served:
    """A service that says back what it is asked, and counts what it served."""

    counts: Counter

    def app(self):
        async def answer(request):
            body = (await request.body()).decode()
            self.counts[body] += 1
            return JSONResponse({"said": body})

        return Starlette(routes=[Route("/{rest:path}", answer, methods=["POST"])])


class NodeProcess:
    """One node as a process of the real command, at the same address after every restart."""

    def __init__(self, lives, operator, node_id, upstream):
        (self.port,) = free_ports(1)
        self.operator, self.node_id = operator, node_id
        self.url = f"http://127.0.0.1:{self.port}"
        self._lives = lives
        self._settings = {
            **lives.shared,
            "private_key": "0x" + bytes(person(operator).key).hex(),
            "node_listen": f"127.0.0.1:{self.port}",
            "node_upstreams": upstream,
            "node_confirmations": 0,
            "node_watch_seconds": 0.1,
        }
        self.child = None

    def start(self):
        """Start it, and wait until it takes calls."""
        folder = self._lives.home / f"node-{self.node_id}"
        self.child = self._lives.nodes_forge.start(["node", "serve", str(self.node_id)], self._settings, folder)
        self._lives.wait_for(self._answers, f"node {self.node_id} does not start")

    def kill(self):
        """kill -9, and start it again."""
        self.end(signal.SIGKILL)
        self.start()

    def end(self, number):
        self.child.signal(number)
        self.child.wait()

    def _answers(self):
        with suppress(httpx.HTTPError):
            return httpx.get(self.url + "/health", timeout=5, trust_env=False).status_code == 200
        return False


class Lives:
    """Two nodes and one agent on one chain; `errands` are the runs that were asked for."""

    def __init__(self, stack, home, seed):
        self.home, self.seed = home, seed
        self.rng = random.Random(f"lives/{seed}")
        self.scene = stack.enter_context(market(home))
        self.world = self.scene.world
        self.shared = {
            "home": home, "rpc_url": self.world.url, "poll_seconds": 0.05, "request_seconds": 20,
            "agent_allow_private": "yes", "agent_call_seconds": 10,
        }  # fmt: skip
        self.nodes_forge = stack.enter_context(Forge(*NODE))
        self.agent_forge = stack.enter_context(Forge(*AGENT))
        self.served = Served(Counter())
        upstream = stack.enter_context(serving(self.served.app()))
        self.nodes = [self._node(stack, operator, upstream) for operator in OPERATORS]
        self.scene.follow()
        self.errands = self._started = 0
        self.books = Books(self.world, home, CLIENT, OPERATORS)

    def _node(self, stack, operator, upstream):
        self.world.node(operator, 5_000_000, PRICE)
        node_id = self.world.registry.node_count()
        node = NodeProcess(self, operator, node_id, upstream)
        self.world.by(operator).send(self.world.registry.set_endpoint(node_id, node.url))
        node.start()
        stack.callback(lambda: node.end(signal.SIGTERM))
        return node

    # --- what is done

    def start(self):
        """Start a new run of the agent, and give its process."""
        self.errands += 1
        path = self.home / f"errand-{self.errands}.yaml"
        path.write_text(WORKFLOW.format(number=self.errands, category=CATEGORY))
        return self.agent("run", str(path), "--yes", "--json")

    def agent(self, *arguments):
        """Start a command of the agent, and give its process."""
        self._started += 1
        settings = {**self.shared, "private_key": "0x" + bytes(person(CLIENT).key).hex()}
        return self.agent_forge.start(["agent", *arguments], settings, self.home / f"agent-{self._started}")

    def length(self):
        """How long a run takes that nobody kills, in seconds."""
        began = time.monotonic()
        ended = self.start().wait()
        if ended.code != 0:
            raise NotRightError(f"a run that nobody killed ended with {ended.code}: {ended.err[-500:]}")
        return time.monotonic() - began

    def resume(self, kill_after=None):
        """Resume until nothing is left; the first time killed after so many seconds, where they are given."""
        if kill_after is not None:
            killed(self.agent("resume"), kill_after)
        for _ in range(RESUMES):
            self._settled_by_nodes()
            ended = self.agent("resume", "--json").wait()
            if ended.code != 0:
                raise NotRightError(f"`agent resume` ended with {ended.code}: {ended.err[-500:]}")
            if not self.books.left():
                return
        raise NotRightError(f"after {RESUMES} times of resuming there is left: {self.books.left()}")

    def _settled_by_nodes(self):
        """Wait until the nodes, which live, settled what the agent asked to close."""
        closing_ids = [row.session_id for row in self.books.journal.closing(self.books.address)]
        self.wait_for(
            lambda: all(self.world.manager.session(one).status == SETTLED for one in closing_ids),
            "a node did not settle a session that is closing",
        )

    def wait_for(self, is_so, complaint):
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            if time.monotonic() > deadline:
                raise NotRightError(complaint)
            threading.Event().wait(0.02)

    # --- what has to be

    def wrong(self):
        """Everything that is not as it has to be, in sentences."""
        return [*self.books.wrong(), *self._wrong_outputs(), *self._wrong_services()]

    def _wrong_outputs(self):
        """Every output is that of its own input; a failed run says why."""
        for run in self.books.runs():
            record = record_of(self.books.journal, run)
            if run.status == "done" and len(record["steps"]) != 3:
                yield f"run {run.run_id} is done after {len(record['steps'])} steps"
            for step in record["steps"]:
                wanted = _wanted(record, step["step_id"]) if step["status"] == "done" else None
                if step["output"] != wanted:
                    yield f"run {run.run_id}, step {step['step_id']}: {step['output']}, not {wanted}"
            if run.status != "done" and not run.reason:
                yield f"run {run.run_id} is {run.status} and does not say why"

    def _wrong_services(self):
        """Whatever was charged was served."""
        charged = sum(self.world.manager.session(one).calls for one, _ in self.books.openings())
        if sum(self.served.counts.values()) < charged:
            yield f"{charged} calls were charged and {sum(self.served.counts.values())} served"


def _wanted(record, step_id):
    """What a step's output has to be, by the workflow's text."""
    number = record["workflow"].removeprefix("errand-")
    said = [{"said": _json({"errand": int(number), "step": name})} for name in ("first", "third")]
    if step_id == "second":
        return {"said": _json(f"errand {number} after {_json([said[0]] * 2)}")}
    return [said[step_id == "third"]] * 2


def _json(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def killed(child, after):
    """kill -9 so many seconds from now, and give how the process ended: by itself where that was sooner."""
    threading.Event().wait(after)
    child.signal(signal.SIGKILL)
    return child.wait()


@contextmanager
def lives(home, seed):
    """A market of killable processes in a folder of its own."""
    with ExitStack() as stack:
        yield Lives(stack, home, seed)
