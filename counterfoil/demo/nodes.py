"""The demo's node servers, one HTTP server for each operator that is up: `python -m counterfoil.demo.nodes`."""

import asyncio
import threading
import time
from urllib.parse import urlsplit

import uvicorn

from counterfoil.chain.connection import Chain, connect
from counterfoil.chain.contracts import NodeRegistry
from counterfoil.demo.cast import OPERATORS, Habit, answer, operator_account
from counterfoil.node.node import Node, Upstream, UpstreamError
from counterfoil.node.server import create_app
from indexer.settings import Settings, load_settings

SLOWNESS_SECONDS = 0.25
WATCH_SECONDS = 2


def slow(body: bytes) -> bytes:
    """A service that takes its time."""
    time.sleep(SLOWNESS_SECONDS)
    return answer(body)


def failing(_: bytes) -> bytes:
    """A service that does not work."""
    raise UpstreamError("the demo's failing service")


UPSTREAMS: dict[Habit, Upstream] = {Habit.GOOD: answer, Habit.SLOW: slow, Habit.FAILS: failing}


def server(chain: Chain, settings: Settings, position: int) -> uvicorn.Server:
    """The server of one operator's node, at the port that the chain names."""
    node_id = position + 1
    upstream = UPSTREAMS[OPERATORS[position].habit]
    node = Node(chain, operator_account(position), node_id, upstream, settings.home / "nodes")
    port = urlsplit(NodeRegistry(chain).node(node_id).endpoint).port
    threading.Thread(target=node.watch, args=(threading.Event(), WATCH_SECONDS), daemon=True).start()
    config = uvicorn.Config(create_app(node), host="127.0.0.1", port=port or 0, log_level="warning", lifespan="off")
    return uvicorn.Server(config)


async def serve_all(chain: Chain, settings: Settings) -> None:
    """Serve until a signal ends the process."""
    up = [position for position, operator in enumerate(OPERATORS) if operator.habit is not Habit.DOWN]
    await asyncio.gather(*(server(chain, settings, position).serve() for position in up))


def main() -> None:
    """Serve every node that is up."""
    settings = load_settings()
    asyncio.run(serve_all(connect(settings), settings))


if __name__ == "__main__":
    main()
