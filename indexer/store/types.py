"""Column types: 256-bit amounts and text that keep their value and their order in SQL on every database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CHAR, Numeric, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

BYTEWISE = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that sorts by its bytes, as SQLite's does: PostgreSQL's own order depends on the machine's locale."""

_DIGITS = 78  # of 2^256 - 1
_LIMIT = 1 << 256


class Uint256(TypeDecorator[int]):
    """A uint256: NUMERIC(78,0) in PostgreSQL, elsewhere 78 decimal digits padded with zeros.

    SQLite would turn 2^63 and more into an error, and a NUMERIC column into a float; padded digits sort as numbers do.
    """

    impl = CHAR
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type of a database."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Numeric(_DIGITS, 0))
        return dialect.type_descriptor(CHAR(_DIGITS))

    def process_bind_param(self, value: int | None, dialect: Dialect) -> Any:  # noqa: ANN401
        """Write a number; ValueError outside 0 to 2^256 - 1."""
        return None if value is None else stored([value], dialect)[0]

    def process_result_value(self, value: Any, dialect: Dialect) -> int | None:  # noqa: ANN401, ARG002
        """Read a number."""
        return None if value is None else int(value)


def stored(amounts: Sequence[int], dialect: Dialect) -> Sequence[int | str]:
    """Write amounts as their columns hold them; ValueError outside 0 to 2^256 - 1."""
    if amounts and not (min(amounts) >= 0 and max(amounts) < _LIMIT):
        raise ValueError("an amount is outside of a uint256")
    return amounts if dialect.name == "postgresql" else [str(amount).zfill(_DIGITS) for amount in amounts]
