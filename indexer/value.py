"""How rows and events are declared."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(declared: type[T]) -> type[T]:
    """Make a class of values: compared and hashed by their fields, and never assigned to, as the type checker sees to.

    A check at run time would make each value four times as slow to build, and they are most of what a backfill builds.
    """
    return dataclass(slots=True, unsafe_hash=True)(declared)
