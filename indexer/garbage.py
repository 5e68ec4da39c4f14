"""Python's search for cycles, made rare where a range of the chain makes very many values and no cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_ALLOCATIONS_A_COLLECTION = 100_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Look for garbage seldom while the block runs: otherwise it takes a fifth of the time of a backfill."""
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS_A_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
