"""YAML as a stricter JSON: what a plain word means is what JSON makes of it, and nothing expands.

Of YAML's surprises none is left: `NO` and `2026-01-01` are texts, `010` and `12:30` too. Anchors, aliases, merges and
tags are refused, and so is a key that stands twice.
"""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

MAX_BYTES = 256 * 2**10
MAX_DEPTH = 32
_MAX_DIGITS = 78
_MERGE = "<<"
_INT = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_BOOL = re.compile(r"(?:true|false)\Z")
_NULL = re.compile(r"(?:null|~|)\Z")
_PLAIN = [
    ("tag:yaml.org,2002:int", _INT, "-0123456789"),
    ("tag:yaml.org,2002:float", _FLOAT, "-0123456789"),
    ("tag:yaml.org,2002:bool", _BOOL, "tf"),
    ("tag:yaml.org,2002:null", _NULL, ["n", "~", ""]),
]


class YamlError(ValueError):
    """A text that is not read; the message says where, and what to do."""


class _Loader(yaml.SafeLoader):
    """A safe loader of JSON's values."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _error(event, "anchors (&) and aliases (*) are not read: write the value out, or quote the text")
        if event.tag is not None:
            raise _error(event, "tags (!) are not read: write a plain value, or quote the text")
        if self.depth == MAX_DEPTH:
            raise _error(event, f"values are nested more than {MAX_DEPTH} deep: make them flatter")
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


class _Dumper(yaml.SafeDumper):
    """Writes what `_Loader` reads: it quotes what would be read as something else."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


for _tag, _words, _first in _PLAIN:
    _Loader.add_implicit_resolver(_tag, _words, list(_first))
    _Dumper.add_implicit_resolver(_tag, _words, list(_first))


def _error(found: Any, problem: str) -> YamlError:  # noqa: ANN401
    """Name the place of an event or a node."""
    mark = found.start_mark
    return YamlError(f"line {mark.line + 1}, column {mark.column + 1}: {problem}")


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise _error(key_node, "a key is a text: quote it")
        if key == _MERGE:
            raise _error(key_node, "merges (<<) are not read: write the keys out")
        if key in made:
            raise _error(key_node, f"the key {key[:80]!r} stands here a second time: take one away")
        made[key] = loader.construct_object(value_node, deep=True)
    return made


def _str(_: _Loader, node: yaml.ScalarNode) -> str:
    # JSON escapes some characters as two halves; a half alone is no text.
    try:
        return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _error(node, "an escape names half a character: write the whole one") from None


def _int(_: _Loader, node: yaml.ScalarNode) -> int:
    if len(node.value) > _MAX_DIGITS:
        raise _error(node, f"a number has at most {_MAX_DIGITS} digits: quote it if it is a text")
    return int(node.value)


def _float(_: _Loader, node: yaml.ScalarNode) -> float:
    number = float(node.value)
    if not math.isfinite(number):
        raise _error(node, "the number is out of range: quote it if it is a text")
    return number


def _quoted(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Only between double quotes is every character written so that it reads as itself.
    style = None if text.replace("\n", "").isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _quoted)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:str", _str)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def read(data: bytes) -> Any:  # noqa: ANN401
    """Read one document of at most MAX_BYTES into JSON values. Raises YamlError."""
    if len(data) > MAX_BYTES:
        raise YamlError(f"it is over {MAX_BYTES} bytes: split it")
    with _as_yaml_errors():
        loader = _Loader(data.decode())
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()


def dump(document: Any) -> str:  # noqa: ANN401
    """Write JSON values so that `read` gives them back. Raises YamlError for what would be too large to read."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=MAX_BYTES)
    if len(text.encode()) > MAX_BYTES:
        raise YamlError(f"it would be over {MAX_BYTES} bytes: split it")
    return text


@contextmanager
def _as_yaml_errors() -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise YamlError("it is no text in UTF-8: save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "the text"
        raise YamlError(f"{place}: {error.problem or error.context}: correct the YAML") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        if isinstance(error, YamlError):
            raise
        raise YamlError("it holds a character that YAML does not know: take it out") from error
