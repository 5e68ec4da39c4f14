"""The demo's services and nodes, a node for each operator that is up: `python -m counterfoil.demo.nodes`."""

import socket
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from counterfoil.chain.connection import Chain, connect
from counterfoil.chain.contracts import NodeRegistry
from counterfoil.cli.signals import stopped_by_signals
from counterfoil.demo.cast import OPERATORS, Habit, answer, operator_account
from counterfoil.node.node import open_node
from counterfoil.node.serving import bind, serve, url_of
from indexer.settings import Settings, load_settings

SLOWNESS_SECONDS = 0.25
Service = Callable[[bytes], bytes]


def slow(body: bytes) -> bytes:
    """A service that takes its time."""
    time.sleep(SLOWNESS_SECONDS)
    return answer(body)


def failing(_: bytes) -> bytes:
    """A service that does not work."""
    raise ValueError("the demo's failing service")


SERVICES: dict[Habit, Service] = {Habit.GOOD: answer, Habit.SLOW: slow, Habit.FAILS: failing}


def application(service: Service) -> Starlette:
    """A service over HTTP: it answers what is posted."""

    async def serve_one(request: Request) -> Response:
        try:
            answered = await run_in_threadpool(service, await request.body())
        except ValueError:
            return Response(status_code=500)
        return Response(answered, media_type="application/json")

    return Starlette(routes=[Route("/", serve_one, methods=["POST"])])


def start_service(service: Service) -> str:
    """Serve one of the demo's services on a free port for as long as the process lives, and give its URL."""
    listener = bind(("127.0.0.1", 0))
    config = uvicorn.Config(application(service), ws="none", lifespan="off", log_level="warning")
    run = uvicorn.Server(config).run
    threading.Thread(target=run, kwargs={"sockets": [listener]}, daemon=True).start()
    return url_of(listener)


def listen(chain: Chain, node_id: int) -> socket.socket:
    """Listen at the port that the chain names for a node."""
    return bind(("127.0.0.1", urlsplit(NodeRegistry(chain).node(node_id).endpoint).port or 0))


def main() -> None:
    """Serve every node that is up, until a signal ends the process."""
    settings = load_settings()
    chain = connect(settings)
    services = {habit: start_service(service) for habit, service in SERVICES.items()}
    with stopped_by_signals() as stop:
        serving = [start_node(chain, settings, position, services, stop) for position in range(len(OPERATORS))]
        for thread in serving:
            if thread:
                thread.join()


def start_node(
    chain: Chain, settings: Settings, position: int, services: dict[Habit, str], stop: threading.Event
) -> threading.Thread | None:
    """Serve one operator's node in a thread, unless it is down."""
    habit = OPERATORS[position].habit
    if habit is Habit.DOWN:
        return None
    # Anvil makes a block only for a transaction: no second one would confirm a session.
    own = settings.model_copy(update={"node_upstreams": services[habit], "node_confirmations": 0})
    node = open_node(chain, operator_account(position), position + 1, own)
    thread = threading.Thread(target=serve, args=(node, listen(chain, position + 1), stop))
    thread.start()
    return thread


if __name__ == "__main__":
    main()
