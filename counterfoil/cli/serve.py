"""`counterfoil serve`: the HTTP API."""

from __future__ import annotations

import gc
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import click

from counterfoil.cli.options import Common, common, example

if TYPE_CHECKING:
    from counterfoil.chain.contracts import ExperienceRecord
    from indexer.settings import Settings


@click.command(epilog=example("counterfoil serve --port 8700"))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8700, show_default=True, help="Port to listen on.")
@common
def serve(common: Common, host: str, port: int) -> None:
    """Serve the index over HTTP: keep it in step with `counterfoil index run --follow`.

    What is of the chain is only read. Records that are posted are kept beside it.
    """
    import uvicorn

    from counterfoil.api.app import create_app
    from counterfoil.reading import open_index
    from counterfoil.receipt_store import ReceiptStore

    with open_index(common.settings) as store:
        app = create_app(store, ReceiptStore(common.settings.home / "receipts"), partial(_ask_ledger, common.settings))
        app.state.directory.warm()
        gc.freeze()  # millions of values stay: looking through them for garbage would stop answers for a second
        uvicorn.run(app, host=host, port=port, log_level="warning")


def _ask_ledger(settings: Settings, record: ExperienceRecord, signature: bytes) -> bool:
    """Ask the ledger on a connection of its own: it is seldom needed, and a server must start without a chain."""
    from counterfoil.chain.connection import connect
    from counterfoil.chain.contracts import ExperienceLedger

    with closing(connect(settings)) as chain:
        return ExperienceLedger(chain).would_take(record, signature)
