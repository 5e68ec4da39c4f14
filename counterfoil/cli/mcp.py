"""`counterfoil mcp`: the tools for agents."""

import signal

import click

from counterfoil.cli.options import Common, common, example, see_that_it_is_free
from indexer.errors import UserError

HOST = "127.0.0.1"


@click.command(epilog=example("counterfoil mcp", "counterfoil mcp --http 8701"))
@click.option("--http", "port", type=click.IntRange(1, 65535), help="Serve HTTP on this port of 127.0.0.1, at /mcp.")
@common
def mcp(common: Common, port: int | None) -> None:
    """Serve directory, routing and audits to agents over the Model Context Protocol, on standard input and output."""
    try:
        from counterfoil.mcp.server import build_server
    except ModuleNotFoundError:
        raise UserError("The MCP server needs the SDK: install it with `pip install 'counterfoil[mcp]'`.") from None
    from counterfoil.mcp.toolbox import open_toolbox

    if port is not None:
        see_that_it_is_free(HOST, port, "--http")
    with open_toolbox(common.settings) as tools:
        server = build_server(tools)
        if port is None:
            # The SDK's thread waits for the next line, and no exception would wake it.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            server.run("stdio")
        else:
            server.run("streamable-http", host=HOST, port=port)
