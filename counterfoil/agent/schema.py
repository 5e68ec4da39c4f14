"""JSON Schema held against what may be hostile: within a time, without any reference to another document."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, Final

import regex
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from counterfoil.agent.checks import draft_of

SECONDS: Final = 2.0
_MAX_PLACE = 80
_Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]
_deadline: ContextVar[float] = ContextVar("deadline")


class _OutOfTimeError(Exception):
    pass


def misfit(schema: Mapping[str, Any], value: object, *, seconds: float = SECONDS) -> str | None:
    """Say at which of its places a schema does not take a value, None where it does.

    What cannot be told within `seconds` does not fit either. Nothing of the value stands in the sentence.
    """
    validator = _bounded(draft_of(schema))(schema, registry=Registry())
    mark = _deadline.set(time.monotonic() + seconds)
    try:
        error = next(validator.iter_errors(value), None)
    except (_OutOfTimeError, TimeoutError):
        return f"the output cannot be held against the JSON Schema within {seconds:g} s"
    except (RecursionError, ArithmeticError, ValueError):
        return "the output is nested too deep for the JSON Schema, or holds a number that is too large for it"
    finally:
        _deadline.reset(mark)
    if error is None:
        return None
    place = "/".join(str(part) for part in error.absolute_schema_path)
    return f"the output does not fit the JSON Schema at {place[:_MAX_PLACE]}"


@lru_cache(maxsize=16)
def _bounded(draft: Any) -> Any:  # noqa: ANN401
    """Give a draft's validator with a look at the clock before each keyword, and without the slow ones."""
    keywords = draft.VALIDATORS | {"pattern": _pattern, "uniqueItems": _unique}
    return extend(draft, {name: _timed(keyword) for name, keyword in keywords.items()})  # type: ignore[no-untyped-call]


def _timed(keyword: _Keyword) -> _Keyword:
    @wraps(keyword)
    def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[ValidationError] | None:  # noqa: ANN401
        if _left() <= 0:
            raise _OutOfTimeError
        return keyword(validator, wanted, value, schema)

    return check


def _left() -> float:
    return _deadline.get() - time.monotonic()


def _pattern(validator: Any, pattern: str, value: Any, _: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if validator.is_type(value, "string") and not regex.search(pattern, value, timeout=max(_left(), 0.001)):
        yield ValidationError("does not match")


def _unique(validator: Any, wanted: bool, value: Any, _: Any) -> Iterator[ValidationError]:  # noqa: ANN401
    if wanted and validator.is_type(value, "array") and len({_key(item) for item in value}) < len(value):
        yield ValidationError("has an item twice")


def _key(value: Any) -> object:  # noqa: ANN401
    """Give what is equal for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not.

    Numbers become texts, since whoever answers can choose numbers of one hash, but not texts.
    """
    if isinstance(value, dict):
        return frozenset((name, _key(below)) for name, below in value.items())
    if isinstance(value, list):
        return tuple(_key(below) for below in value)
    if isinstance(value, str):
        return f"text {value}"
    whole = isinstance(value, float) and value.is_integer()
    return repr(int(value) if whole else value)
