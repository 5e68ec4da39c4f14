"""A small market for tests: a chain, nodes that serve over HTTP, an index that follows, and agents."""

import json
import threading
from contextlib import ExitStack, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from counterfoil.agent.calling import one_step
from counterfoil.agent.desk import desk
from counterfoil.agent.record import record_of
from counterfoil.agent.runner import Runner
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.chain.connection import Chain, connect
from counterfoil.node.node import open_node
from counterfoil.node.serving import bind, serve, url_of
from indexer.query import open_store
from indexer.service import index_run
from indexer.settings import Settings
from tests.support.chain import CATEGORY, anvil, deploy


def echo(body):
    """A service that says back what it was asked."""
    return json.dumps({"echo": body.decode()}).encode()


class BrokenError(Exception):
    """What a service that fails raises."""


def broken(_):
    """A service that fails."""
    raise BrokenError("broken on purpose")


def service(answer):
    """An HTTP service of a function from body to body; where that raises, the server answers 500."""

    async def call(request):
        answered = await run_in_threadpool(answer, await request.body())
        return Response(answered, media_type="application/json")

    return Starlette(routes=[Route("/{rest:path}", call, methods=["GET", "POST"])])


def run(desk, *, budget=None, runner=None, **step):
    """Have an agent run a workflow of one step, and give its record."""
    workflows = WorkflowRunner(desk, runner or Runner(desk), lambda _: None)
    return record_of(desk.journal, workflows.go(workflows.start(one_step(budget, **step))))


class _Server(uvicorn.Server):
    """A server in a thread that says when it is ready, so that nobody has to guess."""

    def __init__(self, config):
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def serving(app):
    """Serve an application on a free port until the block ends, and give its URL."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="off", ws="none")
    server = _Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        assert server.ready.wait(30)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


class Market:
    """What a test works with: `world` (chain and people), `settings`, and nodes by operator."""

    def __init__(self, world, settings, stack):
        self.world = world
        self.settings = settings
        self.nodes = {}
        self._stack = stack

    def node(self, operator, price=100, stake=5_000_000, upstream=echo, up=True, category=CATEGORY, **settings):
        """Register a node and serve it (unless it is down); gives its service_id.

        `upstream` is a function from body to body, or the URL of a service; `settings` are changes for the node alone.
        """
        node_id = self.world.registry.node_count() + 1
        service_id = self.world.node(operator, stake, price, category)
        endpoint = "http://127.0.0.1:9"
        if up:
            url = upstream if isinstance(upstream, str) else self._stack.enter_context(serving(service(upstream)))
            endpoint = self.serve(operator, node_id, **{"node_upstreams": url, **settings})
        self.world.by(operator).send(self.world.registry.set_endpoint(node_id, endpoint))
        return service_id

    def serve(self, operator, node_id, **changes):
        """Serve a registered node until the market ends, and give its URL."""
        settings = Settings(**{**self.settings.model_dump(), **changes})
        account = self.world.by(operator).account
        node = open_node(self._connect(settings), account, node_id, settings)
        self.nodes[operator] = node
        listener, stop = bind(("127.0.0.1", 0)), threading.Event()
        thread = threading.Thread(target=serve, args=(node, listener, stop))
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(stop.set)
        return url_of(listener)

    def follow(self):
        """Keep an index in step with the chain, and give its store."""
        stop = threading.Event()
        thread = threading.Thread(target=index_run, args=(self.settings, True), kwargs={"stop": stop})
        index_run(self.settings)
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(stop.set)
        return self._stack.enter_context(open_store(self.settings.database_url()))

    def desk(self, client, store, relayer=None, **changes):
        """An agent's tools; `changes` are settings."""
        settings = self.settings.model_copy(update={"agent_allow_private": "yes", **changes})
        paying = self.world.by(relayer).account if relayer else None
        made = desk(settings, self._connect(settings), store, self.world.by(client).account, paying)
        self._stack.callback(made.http.close)
        return made

    def _connect(self, settings):
        chain: Chain = connect(settings)
        self._stack.callback(chain.close)
        return chain


@contextmanager
def market(home, *arguments):
    """A chain with the contracts and nobody on it yet. It makes a block for each transaction, so none is confirmed.

    `arguments` are anvil's.
    """
    with ExitStack() as stack:
        url = stack.enter_context(anvil(*arguments))
        world = deploy(url, home)
        stack.callback(world.chain.close)
        settings = Settings(home=home, rpc_url=url, poll_seconds=0.05, node_confirmations=0, node_watch_seconds=0.2)
        yield Market(world, settings, stack)
