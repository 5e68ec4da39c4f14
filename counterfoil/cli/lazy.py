"""Groups whose commands are imported only when they are called: some pay for slow libraries."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name, each from its own `module:attribute`."""

    def __init__(self, name: str | None, places: Mapping[str, str], **more: Any) -> None:  # noqa: ANN401
        super().__init__(name, **more)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every command's name."""
        return sorted(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in self._places:
            return None
        module, name = self._places[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command
