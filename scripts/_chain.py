"""What the scripts share: the connection to a chain, and where its deployment file is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from ape import networks
from ape.api import ProviderAPI
from ape.exceptions import ApeException

network_option = click.option(
    "--network",
    default="ethereum:local:foundry",
    show_default=True,
    help="An Ape network choice or the address of a node, such as http://127.0.0.1:8545.",
)
home_option = click.option(
    "--home",
    type=click.Path(path_type=Path),
    default=".counterfoil",
    envvar="COUNTERFOIL_HOME",
    show_default=True,
    help="The folder that holds deployments/.",
)


class UsageSentence(click.ClickException):
    """A fault that the user mends: one sentence and exit code 2."""

    exit_code = 2


@contextmanager
def connected(network: str) -> Iterator[ProviderAPI]:
    """A connection to a network; a node that does not answer is a sentence, not a trace."""
    choice = networks.parse_network_choice(network)
    try:
        provider = choice.__enter__()
    except (ApeException, OSError) as error:
        raise UsageSentence(
            f"no node answers at {network}; start one, or name another with --network ({error})"
        ) from error
    try:
        yield provider
    finally:
        choice.__exit__(None, None, None)


def deployment_path(home: Path, chain_id: int) -> Path:
    """Where the deployment file of a chain is."""
    return home / "deployments" / f"{chain_id}.json"
