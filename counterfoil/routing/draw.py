"""Draws without replacement over fixed weights (design section 5): each walks down a tree of sums, not along a list."""

from collections.abc import Sequence
from typing import overload

from eth_hash.auto import keccak

_LENGTHS = (1, 16)  # the pick alone, then as many as RoutingLens gives, then all


class Order(Sequence[int]):
    """Services in the order in which a seed draws them: a tuple, except that a place is drawn when it is asked for.

    `ids` ascend, and `sums` is `sums_of` their weights. Threads may share one.
    """

    __slots__ = ("_drawn", "_ids", "_seed", "_sums")

    def __init__(self, ids: Sequence[int], sums: Sequence[int], seed: bytes) -> None:
        self._ids, self._sums, self._seed = ids, sums, seed
        self._drawn: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[int, ...]: ...
    def __getitem__(self, place: int | slice) -> int | tuple[int, ...]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return self._first(places + 1)[places]
        drawn = self._first(max(places, default=-1) + 1)
        return tuple(drawn[i] for i in places)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Order | tuple):
            return self[:] == tuple(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment] # as a list's: it would have to draw everything

    def __repr__(self) -> str:
        return repr(self[:])

    def _first(self, length: int) -> tuple[int, ...]:
        drawn = self._drawn
        if len(drawn) < length:
            enough = next((step for step in _LENGTHS if step >= length), len(self))
            drawn = self._drawn = draw(self._ids, self._sums, self._seed, enough)
        return drawn


def draw(ids: Sequence[int], sums: Sequence[int], seed: bytes, length: int) -> tuple[int, ...]:
    """Draw the first `length` of the order, or all of them where there are fewer."""
    tree = list(sums)
    taken: list[int] = []
    for k in range(min(length, len(ids))):
        if tree[1] == 0:
            gone = set(taken)
            tree = sums_of([int(place not in gone) for place in range(len(ids))])
        number = int.from_bytes(keccak(seed + k.to_bytes(32, "big")), "big") % tree[1]
        taken.append(_take(tree, number))
    return tuple(ids[place] for place in taken)


def sums_of(weights: Sequence[int]) -> list[int]:
    """A binary tree as a list: node 1 is the total, node i the sum of 2i and 2i + 1, the last level the weights."""
    width = 1 << max(0, len(weights) - 1).bit_length()
    level = [*weights, *[0] * (width - len(weights))]
    levels = [level]
    while len(level) > 1:
        level = [left + right for left, right in zip(level[::2], level[1::2], strict=True)]
        levels.append(level)
    return [0, *(node for level in reversed(levels) for node in level)]


def _take(tree: list[int], number: int) -> int:
    """Remove the first leaf whose cumulative sum exceeds `number`, which is below the total; gives its place."""
    width = len(tree) // 2
    node = 1
    while node < width:
        node *= 2
        if number >= tree[node]:
            number -= tree[node]
            node += 1
    place, weight = node - width, tree[node]
    while node:
        tree[node] -= weight
        node //= 2
    return place
