"""`counterfoil serve`: the HTTP API."""

import gc
from contextlib import closing

import click

from counterfoil.cli.options import Common, common, example, see_that_it_is_free


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
    from counterfoil.chain.wallets import WalletSignatures
    from counterfoil.reading import open_index
    from counterfoil.receipt_store import ReceiptStore

    see_that_it_is_free(host, port, "--port")
    with open_index(common.settings) as store, closing(WalletSignatures(common.settings)) as wallets:
        app = create_app(store, ReceiptStore(common.settings.home / "receipts"), wallets)
        app.state.directory.warm()
        gc.freeze()  # millions of values stay: looking through them for garbage would stop answers for a second
        uvicorn.run(app, host=host, port=port, log_level="warning")
