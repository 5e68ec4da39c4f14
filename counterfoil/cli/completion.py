"""`counterfoil completion`: what a shell needs to complete commands and options."""

import click
from click.shell_completion import get_completion_class

from counterfoil.cli.options import example


@click.command(epilog=example("counterfoil completion bash"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script by which SHELL completes commands and options.

    For bash and zsh, put `eval "$(counterfoil completion bash)"` into the shell's start-up file, with the shell's own
    name; for fish, `counterfoil completion fish | source`.
    """
    from counterfoil.cli.main import main

    complete = get_completion_class(shell)
    assert complete is not None  # noqa: S101 - the library knows each of the three
    click.echo(complete(main, {}, "counterfoil", "_COUNTERFOIL_COMPLETE").source())
