"""What a workflow's `judge:` asks of an answer, checked when the workflow is read. How it is asked is in judges.py."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

import regex
import rfc8785
from jsonschema.exceptions import SchemaError
from jsonschema.validators import (
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from indexer.http import is_url

MAX_PATTERN: Final = 1000
UNBOUNDED: Final = frozenset({"patternProperties", "unevaluatedItems", "unevaluatedProperties"})
"""Keywords of JSON Schema that are not taken: no clock can be looked at while they work."""
_DRAFTS = {
    draft.META_SCHEMA["$id"].rstrip("#"): draft
    for draft in (Draft202012Validator, Draft201909Validator, Draft7Validator, Draft6Validator)
}
_DEFAULT = Draft202012Validator.META_SCHEMA["$id"]
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_SHOWN = 80


def _is_exact(value: JsonValue) -> JsonValue:
    try:
        rfc8785.dumps(value)
    except (ValueError, RecursionError):
        raise ValueError(
            "holds what JSON does not carry exactly, such as a whole number from 2^53 on: quote it"
        ) from None
    return value


Json = Annotated[JsonValue, AfterValidator(_is_exact)]
"""A value that reads the same in every JSON program (RFC 8785)."""


def _is_pattern(pattern: str) -> str:
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"has over {MAX_PATTERN} characters: shorten it")
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"is no regular expression ({error}): correct it") from None
    return pattern


def draft_of(schema: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Give the validator of a schema's draft, 2020-12 where it names none. Raises ValueError for an unknown one."""
    name = str(schema.get("$schema", _DEFAULT)).rstrip("#")
    if name not in _DRAFTS:
        raise ValueError("names a $schema that is not known: take draft 2020-12, 2019-09, 7 or 6")
    return _DRAFTS[name]


def _is_schema(schema: dict[str, Any]) -> dict[str, Any]:
    _is_exact(schema)
    try:
        draft_of(schema).check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"is no JSON Schema at {error.json_path[:_SHOWN]}: correct it") from None
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry[Any]().with_resource(resource.id() or "", resource).crawl().resolver(resource.id() or "")
    for key, value in _keywords(schema):
        _check_keyword(key, value, schema, resolver)
    return schema


def _check_keyword(key: str, value: object, schema: Mapping[str, Any], resolver: Any) -> None:  # noqa: ANN401
    if key in UNBOUNDED:
        raise ValueError(f"has {key}, which a hostile answer can make slow without bound: do without it")
    if not isinstance(value, str):
        return
    if key == "$id" and value != schema.get("$id"):
        raise ValueError("has an $id below its top: take it out")
    if key == "pattern":
        _is_pattern(value)
    if key in _REFERENCES:
        try:
            resolver.lookup(value)
        except Unresolvable:
            raise ValueError(f"refers to {value[:_SHOWN]!r}, which is not in it: put it into $defs") from None


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    if isinstance(schema, Mapping):
        yield from schema.items()
    for below in schema.values() if isinstance(schema, Mapping) else schema if isinstance(schema, list) else ():
        yield from _keywords(below)


def _is_hook(url: str) -> str:
    if not is_url(url):
        raise ValueError("is no http or https URL, such as http://127.0.0.1:9000/judge: correct it")
    if urlsplit(url).username is not None:
        raise ValueError("holds a name or a password, which would stand in every run record: take it out")
    return url


class Checks(BaseModel):
    """The checks of one step, and at most one hook that scores what passed them. What is left out is not asked.

    `status` lists the HTTP statuses that are a success, 200 to 299 without it. `json_schema` is held against the
    decoded output (draft 2020-12, or what its `$schema` names), `matches` searched in the body's text. `within_ms` is
    in milliseconds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    status: Annotated[tuple[Annotated[int, Field(ge=200, le=399)], ...], Field(strict=False, max_length=20)] = ()
    json_schema: Annotated[dict[str, JsonValue], AfterValidator(_is_schema)] | None = None
    matches: Annotated[str, AfterValidator(_is_pattern)] | None = None
    within_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None
    command: Annotated[tuple[Annotated[str, Field(max_length=4096)], ...], Field(strict=False, max_length=64)] = ()
    url: Annotated[str, Field(max_length=2048), AfterValidator(_is_hook)] | None = None

    @model_validator(mode="after")
    def _has_one_hook(self) -> Self:
        if self.command and self.url:
            raise ValueError("has a command and a url: keep one of them")
        if self.command and (not self.command[0] or any("\0" in part for part in self.command)):
            raise ValueError("has a command without a program, or with a NUL in it: correct it")
        return self
