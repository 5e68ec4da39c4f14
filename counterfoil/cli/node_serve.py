"""`counterfoil node serve`: a registered node in front of the operator's own service."""

import os
from collections.abc import Mapping
from contextlib import closing

import click
import structlog

from counterfoil.cli import logs
from counterfoil.cli.operating import connected
from counterfoil.cli.options import Common, example, with_settings
from counterfoil.cli.signals import stopped_by_signals
from counterfoil.cli.signing import account
from indexer.errors import UserError
from indexer.http import without_secrets
from indexer.settings import Settings

_SETTINGS = (
    "home", "rpc_url", "deployment", "finality", "request_seconds", "max_range_blocks", "log_format",
    *(name for name in Settings.model_fields if name.startswith("node_")),
)  # fmt: skip


@click.command(
    epilog=example(
        "counterfoil node serve 1 --upstream http://127.0.0.1:8000",
        "counterfoil node serve 1 --upstream llm:completion=http://127.0.0.1:8001/v1 --log-format json",
    )
)
@click.argument("node_id", type=click.IntRange(1))
@with_settings(*_SETTINGS)
def serve(common: Common, node_id: int) -> None:
    """Serve a node: take calls with vouchers, pass them to its upstreams, and settle.

    The key comes from COUNTERFOIL_KEYSTORE or COUNTERFOIL_PRIVATE_KEY, what upstreams get as `Authorization` from
    COUNTERFOIL_UPSTREAM_AUTHORIZATION. An interrupt, or SIGTERM, lets calls in flight end; a second one does not wait.
    """
    settings = common.settings
    logs.configure(settings.log_format)
    with logs.logged_failures(settings.log_format):
        _serve(common, node_id, settings)
    structlog.get_logger().info("stopped", message="Stopped; what is unsettled is in the book for the next start.")


def _serve(common: Common, node_id: int, settings: Settings) -> None:
    from counterfoil.node.node import open_node
    from counterfoil.node.serving import bind, serve, url_of
    from counterfoil.node.upstream import AUTHORIZATION

    upstreams = settings.upstreams()
    if not upstreams:
        raise UserError("There is nothing to pass calls to: name the service's URL with --upstream.")
    key = account()
    chain = connected(common)
    with stopped_by_signals() as stop, closing(bind(settings.node_address())) as listener:
        node = open_node(chain, key, node_id, settings, os.environ.get(AUTHORIZATION))
        url = url_of(listener)
        structlog.get_logger().info(
            "listening", node_id=node_id, url=url, message=f"Node {node_id} takes calls at {url}; {_shown(upstreams)}."
        )
        serve(node, listener, stop)


def _shown(upstreams: Mapping[str, str]) -> str:
    return ", ".join(
        f"{category or 'every category'} is at {without_secrets(url)}" for category, url in upstreams.items()
    )
