"""The form of what an API says: read strictly, and named by a sentence where it is another one."""

from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from indexer.http import HttpAnswer

T = TypeVar("T")

PROBLEM: Final = "urn:counterfoil:problem:"
_SHOWN: Final = 80
_MAX_DETAIL: Final = 300


class FormError(Exception):
    """What came is no JSON, or has another form; the message says what came instead."""


class Problem(TypedDict):
    """What an API answers where it cannot answer (RFC 9457)."""

    type: str
    detail: str


def read(answer: HttpAnswer, form: type[T]) -> T:
    """Read an answer's JSON as a form of `counterfoil.answers`, and leave out what it has beyond that.

    Raises FormError.
    """
    kind = answer.content_type.partition(";")[0].strip().lower()
    if kind not in {"application/json", "application/problem+json"}:
        raise FormError(f"an answer of type {kind[:_SHOWN]!r}, not JSON")
    try:
        found = TypeAdapter(form).validate_json(answer.body, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise FormError("something that is cut or no JSON") from None
        where = ".".join(str(part)[:_SHOWN] for part in first["loc"])
        raise FormError(f"JSON of another form ({where or 'all of it'}: {first['msg'][:_SHOWN]})") from None
    return found


def problem_of(answer: HttpAnswer) -> Problem | None:
    """Read a problem: the part of its type that names the kind, and its detail, cut; None for what is none."""
    try:
        found = read(answer, Problem)
    except FormError:
        return None
    if not found["type"].startswith(PROBLEM):
        return None
    return {"type": found["type"].removeprefix(PROBLEM), "detail": found["detail"][:_MAX_DETAIL]}
