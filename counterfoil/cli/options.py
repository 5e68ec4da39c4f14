"""Options that many commands share."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import click
from pydantic import ValidationError

from indexer.errors import QuestionError, SettingsError
from indexer.query import At as BlockName
from indexer.query import named_block
from indexer.settings import Settings, load_settings

P = ParamSpec("P")
R = TypeVar("R")

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")


@dataclass(frozen=True, slots=True)
class Common:
    """What the shared options say: where things are, and whether to print JSON."""

    settings: Settings
    json: bool


def common(command: Callable[..., R]) -> Callable[..., R]:
    """Add --home, --rpc, --database, --deployment and --json; the command gets them as `common`."""

    @click.option("--home", type=click.Path(path_type=Path), help="Folder of deployments, index and receipts.")
    @click.option("--rpc", "rpc_url", help="URL of the chain's RPC.")
    @click.option("--database", help="The index: a file or a database URL.")
    @click.option("--deployment", type=click.Path(path_type=Path), help="The deployment file.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @wraps(command)
    def with_common(*arguments: Any, as_json: bool, **options: Any) -> R:  # noqa: ANN401
        named = {name: options.pop(name) for name in ("home", "rpc_url", "database", "deployment")}
        return command(*arguments, common=Common(settings_with(**named), as_json), **options)

    return with_common


def settings_with(**named: object) -> Settings:
    """The settings of the environment, with those that a command named on top. Raises SettingsError."""
    given = {name: value for name, value in named.items() if value is not None}
    if not given:
        return load_settings()
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise SettingsError(f"Correct these options or settings: {wrong}.") from None


class At(click.ParamType):
    """A block: its number, or its hash."""

    name = "block"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> BlockName:  # noqa: ANN401
        """A number as int, a hash as lower-case text."""
        try:
            return named_block(str(value))
        except QuestionError as error:
            return self.fail(str(error), param, ctx)


class Address(click.ParamType):
    """An account's address, taken in any case."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """The address in lower case."""
        if not _ADDRESS.fullmatch(str(value)):
            return self.fail("an address is 0x and 40 hexadecimal digits", param, ctx)
        return str(value).lower()


at = click.option("--at", type=At(), help="As of this block (number or hash) instead of the newest indexed one.")
after = click.option("--after", type=click.IntRange(0), default=0, help="Begin after this id.")
limit = click.option(
    "--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="At most so many rows."
)
