"""Write docs/configuration.md from the fields of the settings: `make docs`."""

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from indexer.settings import CONFIG, CONFIG_FILE, VARIABLES, Settings, flag_of, variable_of

PATH = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"
_INTRODUCTION = f"""\
# Configuration

Made from `indexer/settings.py` by `make docs`; a test fails when it is stale.

A flag comes before the environment, the environment before the file, the file before the default. `counterfoil config`
shows every setting, its value and where that comes from; keys in URLs are not shown.

- **Flags.** `counterfoil config` takes all of them, `counterfoil index run` those of an index, `counterfoil node serve`
  those of a node. Every command takes `--home`, `--rpc-url` (or `--rpc`), `--deployment` and `--config`, all but
  `node serve` take `--database`, and commands that read take `--api`.
- **Environment.** A variable with the prefix `COUNTERFOIL_` that is nearly a setting's name is an error; any other
  unknown one is left alone, and `counterfoil config` lists it.
- **File.** TOML, one `name = value` a line: `{CONFIG_FILE}` in the working directory, or the file that `--config` or
  `{CONFIG}` names. An unknown name is an error. Relative paths start at the working directory.

A wrong value is an error that says where it stands and what is right, and does not repeat it.
"""


def document() -> str:
    """Give the page's text."""
    settings = [_setting(name, field) for name, field in Settings.model_fields.items()]
    others = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items())
    head = "## Variables that are no settings\n\n| variable | what it is |\n|---|---|\n"
    return "\n".join([_INTRODUCTION, "## Settings\n", *settings, head + others + "\n"])


def _setting(name: str, field: FieldInfo) -> str:
    pairs = [
        f"Variable `{variable_of(name)}`",
        f"flag `{flag_of(name)}`",
        kind(field.annotation, field.metadata),
        f"default {_default(field.default)}",
    ]
    example = f"; example `{field.examples[0]}`" if field.examples else ""
    return f"### {name}\n\n{_filled(field.description or '')}\n\n{_filled(', '.join(pairs) + example)}.\n"


def _filled(words: str) -> str:
    return textwrap.fill(" ".join(words.split()), 119, break_long_words=False, break_on_hyphens=False)


def _default(value: object) -> str:
    return "none" if value is None or value == "" else f"`{value}`"


def kind(annotation: Any, metadata: Iterable[Any] = ()) -> str:  # noqa: ANN401
    """Say in words which values a field takes."""
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return kind(inner, [*marks[0].metadata] if isinstance(marks[0], FieldInfo) else marks)
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(annotation))
    if get_args(annotation):
        return " or ".join(kind(part) for part in get_args(annotation) if part is not type(None))
    words = {int: "a whole number", float: "a number", str: "a text", Path: "a path"}[annotation]
    return words + _range(metadata)


def _range(metadata: Iterable[Any]) -> str:
    found = {mark: getattr(item, mark) for item in metadata for mark in ("gt", "ge", "le") if hasattr(item, mark)}
    if not found:
        return ""
    low = f"over {found['gt']}" if "gt" in found else f"from {found['ge']}"
    return f" {low} to {found['le']}"


def main() -> None:
    """Write the page."""
    PATH.write_text(document())


if __name__ == "__main__":
    main()
