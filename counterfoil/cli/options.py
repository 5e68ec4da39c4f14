"""Options that many commands share."""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar, get_args, get_origin

import click

from counterfoil.asking import Answers, open_answers
from indexer.errors import QuestionError, UserError
from indexer.query import At as BlockName
from indexer.query import named_block
from indexer.settings import CONFIG, Loaded, Settings, flag_of, load

P = ParamSpec("P")
R = TypeVar("R")

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_SHORT: Final = {"rpc_url": "--rpc", "node_upstreams": "--upstream"}
_REPEATED: Final = {"node_upstreams"}
_PLACES: Final = ("home", "rpc_url", "database", "deployment")


@dataclass(frozen=True, slots=True)
class Common:
    """What the shared options say: the settings and where they come from, and whether to print JSON."""

    loaded: Loaded
    json: bool

    @property
    def settings(self) -> Settings:
        """The settings themselves."""
        return self.loaded.settings


def with_settings(*names: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Add a flag for each of these settings, --config and --json; the command gets them as `common`."""

    def add(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def with_common(*arguments: Any, config: Path | None, as_json: bool, **options: Any) -> R:  # noqa: ANN401
            flags = {name: options.pop(name) for name in names}
            return command(*arguments, common=Common(load(flags, config), as_json), **options)

        wrapped: Callable[..., R] = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(with_common)
        file = click.Path(path_type=Path)
        wrapped = click.option("--config", type=file, help=f"The file of settings; see also {CONFIG}.")(wrapped)
        for name in reversed(names):
            wrapped = _setting_option(name)(wrapped)
        return wrapped

    return add


def _setting_option(name: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    field = Settings.model_fields[name]
    kind: click.ParamType | None = None
    if get_origin(field.annotation) is Literal:
        kind = click.Choice(get_args(field.annotation))
    flags = [_SHORT[name], flag_of(name)] if name in _SHORT else [flag_of(name)]
    first_sentence = " ".join((field.description or "").split()).split(". ")[0].removesuffix(".") + "."
    if name in _REPEATED:
        first_sentence += " May be given several times."
        return click.option(*flags, name, multiple=True, callback=_joined, help=first_sentence)
    return click.option(*flags, name, type=kind, help=first_sentence)


def _joined(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str | None:
    return ",".join(given) or None


common = with_settings(*_PLACES)
asking = with_settings("api", *_PLACES)


@contextmanager
def answering(common: Common) -> Iterator[Answers]:
    """Give who answers a reading command: the API of the settings, unless flags name an index of one's own.

    Raises QuestionError where flags name both.
    """
    origins, settings = common.loaded.origins, common.settings
    own = [_SHORT.get(name, flag_of(name)) for name in _PLACES if origins[name] == "flag"]
    if settings.api and own:
        if origins["api"] == "flag":
            raise QuestionError(f"--api asks a server, {own[0]} names an index of your own: give one of them.")
        settings = settings.model_copy(update={"api": ""})
    with open_answers(settings) as answers:
        yield answers


def example(*lines: str) -> str:
    """The end of a command's help: command lines that work."""
    return "\b\n" + "\n".join(("Example:", *(f"  {line}" for line in lines)))


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


def see_that_it_is_free(host: str, port: int, option: str) -> None:
    """Raise UserError, which names the option, where a port cannot be listened on."""
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise UserError(
            f"Port {port} cannot be listened on ({os.strerror(error.errno or 0)}): name another with {option}."
        ) from None
