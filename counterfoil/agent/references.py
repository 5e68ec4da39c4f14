"""`${step.key.0}` in a step's input: a value of an earlier step's output. Pure.

A text that is one reference and nothing else takes the value as it is; within other text the value is put in as text,
or as JSON where it is none. `$${` stands for a plain `${`. Keys of an object are never looked into.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from indexer.errors import UserError

MAX_RESOLVED: Final = 2**20
"""The most bytes of JSON that all the references of an input may bring into it."""

_MARK = re.compile(r"(?P<plain>\$\$\{)|\$\{(?P<path>[^{}]*)\}|(?P<open>\$\{)")
_PATH = re.compile(r"[a-z][a-z0-9_-]{0,31}(?:\.[^.]+)*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_NAMED = 5
_SHOWN = 40


class BadReferenceError(UserError):
    """A reference that is malformed or leads nowhere; the message is a sentence."""


def references(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Give every reference in a value, as `step.key.0`. Raises BadReferenceError for one that cannot be read."""
    for text in _texts(value):
        for mark in _MARK.finditer(text):
            if mark["plain"] is None:
                yield _path(mark)


def resolve(value: Any, outputs: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Put the outputs of earlier steps, by step id, where a value refers to them.

    Raises BadReferenceError where an output has no such path, and where all of them together are over MAX_RESOLVED.
    """
    return _Resolver(outputs).value(value)


@dataclass(slots=True)
class _Resolver:
    """Counts what it brings in: outputs are other people's, and a few references may name a large one many times."""

    outputs: Mapping[str, Any]
    left: int = MAX_RESOLVED

    def value(self, value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self.value(below) for key, below in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(below) for below in value]
        return value

    def _text(self, text: str) -> Any:  # noqa: ANN401
        whole = _MARK.fullmatch(text)
        if whole and whole["plain"] is None:
            path = _path(whole)
            found = _follow(self.outputs, path)
            self._count(path, _json(path, found))
            return found
        return _MARK.sub(self._piece, text)

    def _piece(self, mark: re.Match[str]) -> str:
        if mark["plain"] is not None:
            return "${"
        path = _path(mark)
        found = _follow(self.outputs, path)
        return self._count(path, found if isinstance(found, str) else _json(path, found))

    def _count(self, path: str, text: str) -> str:
        self.left -= _size(path, text)
        if self.left < 0:
            raise BadReferenceError(
                f"What the input refers to is over {MAX_RESOLVED} bytes at ${{{path}}}: refer to a part of it."
            )
        return text


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for below in value.values():
            yield from _texts(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _texts(below)


def _path(mark: re.Match[str]) -> str:
    if mark["open"] is not None:
        raise BadReferenceError("A reference that begins with ${ has no end: close it with }, or write $${ for ${.")
    if not _PATH.fullmatch(mark["path"]):
        raise BadReferenceError(
            f"{mark[0][:_SHOWN]!r} is no reference: write ${{step}} or ${{step.key.0}}, or $${{ for a plain ${{."
        )
    return mark["path"]


def _follow(outputs: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401
    step, *keys = path.split(".")
    if step not in outputs:
        raise BadReferenceError(f"${{{path}}} cannot be followed: there is no output of the step {step}.")
    found = outputs[step]
    for place, key in enumerate(keys):
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list | tuple) and _INDEX.fullmatch(key) and int(key) < len(found):
            found = found[int(key)]
        else:
            at = ".".join((step, *keys[:place]))
            raise BadReferenceError(f"${{{path}}} cannot be followed: {at} has no {key}, it is {_described(found)}.")
    return found


def _described(value: Any) -> str:  # noqa: ANN401
    """Say what a value is, of which anybody may be the author."""
    if isinstance(value, Mapping):
        names = [repr(str(name)[:_SHOWN]) for name in list(value)[:_NAMED]]
        more = ", ..." if len(value) > _NAMED else ""
        return f"an object with {', '.join(names)}{more}" if names else "an empty object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return "null" if value is None else f"a {type(value).__name__}"


def _json(path: str, value: Any) -> str:  # noqa: ANN401
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise BadReferenceError(f"${{{path}}} is no JSON value: judge that step's output more strictly.") from error


def _size(path: str, text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise BadReferenceError(
            f"${{{path}}} holds half a character: judge that step's output more strictly."
        ) from error
