"""A small market for tests: a chain, nodes that serve over HTTP, an index that follows, and agents."""

import json
import threading
from contextlib import ExitStack, contextmanager

import uvicorn

from counterfoil.agent.desk import desk
from counterfoil.chain.connection import Chain, connect
from counterfoil.node.node import Node, UpstreamError
from counterfoil.node.server import create_app
from indexer.query import open_store
from indexer.service import index_run
from indexer.settings import Settings
from tests.support.chain import CATEGORY, anvil, deploy


def echo(body):
    """A service that says back what it was asked."""
    return json.dumps({"echo": body.decode()}).encode()


def broken(_):
    """A service that fails."""
    raise UpstreamError("broken on purpose")


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

    def node(self, operator, price=100, stake=5_000_000, upstream=echo, up=True, category=CATEGORY):
        """Register a node and serve it (unless it is down); gives its service_id."""
        node_id = self.world.registry.node_count() + 1
        service_id = self.world.node(operator, stake, price, category)
        account = self.world.by(operator).account
        node = Node(self._connect(), account, node_id, upstream, self.settings.home / "nodes")
        self.nodes[operator] = node
        endpoint = "http://127.0.0.1:9"
        if up:
            endpoint = self._stack.enter_context(serving(create_app(node)))
        self.world.by(operator).send(self.world.registry.set_endpoint(node_id, endpoint))
        return service_id

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
        made = desk(settings, self._connect(), store, self.world.by(client).account, paying)
        self._stack.callback(made.http.close)
        return made

    def _connect(self):
        chain: Chain = connect(self.settings)
        self._stack.callback(chain.close)
        return chain


@contextmanager
def market(home):
    """A chain with the contracts and nobody on it yet."""
    with ExitStack() as stack:
        url = stack.enter_context(anvil())
        world = deploy(url, home)
        stack.callback(world.chain.close)
        yield Market(world, Settings(home=home, rpc_url=url, poll_seconds=0.05), stack)
