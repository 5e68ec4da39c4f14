"""The entry point: commands are imported only when they are called, and every error ends in a sentence."""

from typing import Any, Final

import click

from counterfoil.cli.lazy import LazyGroup
from counterfoil.receipts import ReceiptError
from counterfoil.routing.lottery import LotteryError
from indexer.errors import IndexerError, RetryableError, StoreUnavailableError

COMMANDS: Final = {
    "agent": "counterfoil.cli.agent:agent",
    "audit": "counterfoil.cli.audit:audit",
    "completion": "counterfoil.cli.completion:completion",
    "config": "counterfoil.cli.config:config",
    "index": "counterfoil.cli.index:index",
    "mcp": "counterfoil.cli.mcp:mcp",
    "node": "counterfoil.cli.nodes:node",
    "nodes": "counterfoil.cli.nodes:nodes",
    "receipt": "counterfoil.cli.receipt:receipt",
    "route": "counterfoil.cli.route:route",
    "serve": "counterfoil.cli.serve:serve",
    "service": "counterfoil.cli.services:service",
    "services": "counterfoil.cli.services:services",
    "session": "counterfoil.cli.sessions:session",
    "sessions": "counterfoil.cli.sessions:sessions",
}


class SentenceError(click.ClickException):
    """An error as its sentence on stderr; exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:  # noqa: ANN401
        """Print the sentence alone, made harmless: an RPC or a contract may have written parts of it."""
        from counterfoil.texts import printable

        click.echo(printable(self.format_message()), file=file, err=file is None)


class Commands(LazyGroup):
    """All commands; what one raises on purpose becomes a sentence."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Run a command."""
        try:
            return super().invoke(ctx)
        except StoreUnavailableError as error:
            raise SentenceError(_sentence(error)) from error
        except RetryableError as error:
            raise SentenceError(f"{_sentence(error)} Check the RPC, then try again.") from error
        except (IndexerError, ReceiptError, LotteryError) as error:
            raise SentenceError(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    text = str(error)
    start = text if text.startswith("http") else text[:1].upper() + text[1:]
    return start if start.endswith((".", "!", "?")) else f"{start}."


@click.command(
    cls=Commands,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="counterfoil")
def main() -> None:
    """Counterfoil routes paid calls to service nodes; what it chose, and why, anyone can replay from chain state."""
