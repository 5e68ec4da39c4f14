"""`counterfoil mcp`: the tools for agents."""

import click

from counterfoil.cli.options import Common, common
from indexer.errors import UserError


@click.command()
@click.option("--http", "port", type=click.IntRange(1, 65535), help="Serve HTTP on this port of 127.0.0.1, at /mcp.")
@common
def mcp(common: Common, port: int | None) -> None:
    """Serve directory, routing and audits to agents over the Model Context Protocol, on standard input and output.

    Example: counterfoil mcp
    """
    try:
        from counterfoil.mcp.server import build_server
    except ModuleNotFoundError:
        raise UserError("The MCP server needs the SDK: install it with `pip install 'counterfoil[mcp]'`.") from None
    from counterfoil.mcp.toolbox import open_toolbox

    with open_toolbox(common.settings) as tools:
        server = build_server(tools)
        if port is None:
            server.run("stdio")
        else:
            server.run("streamable-http", host="127.0.0.1", port=port)
