"""A range of blocks through the pure fold: decode, read the rows that will be touched, fold, digest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from indexer.chain import Header, Log
from indexer.decode import DecodeError, LogDecoder
from indexer.digest import next_digest
from indexer.project import NO_CHANGES, Changes, PlacedEvent, Rejection, State, fold_block, touched
from indexer.rows import Key, Versioned


class RunningState(State, Protocol):
    """Rows that are read ahead and move on from block to block."""

    def prefetch(self, keys: Mapping[type[Versioned], Iterable[Key]]) -> None:
        """Read these rows at once."""

    def apply(self, changes: Changes) -> None:
        """Let the next block see what this one changed."""


@dataclass(frozen=True, slots=True)
class FoldedBlock:
    """A block, its logs, what they change, and the digest after it."""

    header: Header
    logs: tuple[Log, ...]
    changes: Changes
    digest: str


@dataclass(frozen=True, slots=True)
class _Decoded:
    events: tuple[PlacedEvent, ...]
    rejections: tuple[Rejection, ...]


def fold_range(
    headers: Sequence[Header], logs: Sequence[Log], decoder: LogDecoder, state: RunningState, digest: str
) -> tuple[FoldedBlock, ...]:
    """Fold consecutive blocks over `state`; `digest` is the one before the first of them."""
    by_block: dict[int, list[Log]] = {}
    for log in logs:
        by_block.setdefault(log.block_number, []).append(log)
    decoded = {number: _decode(block_logs, decoder) for number, block_logs in by_block.items()}
    state.prefetch(touched(item.event for block in decoded.values() for item in block.events))
    folded = []
    for header in headers:
        changes = _changes(header.number, decoded.get(header.number), state)
        digest = next_digest(digest, header.number, header.hash, changes)
        folded.append(FoldedBlock(header, tuple(by_block.get(header.number, ())), changes, digest))
    return tuple(folded)


def _changes(number: int, decoded: _Decoded | None, state: RunningState) -> Changes:
    if decoded is None:
        return NO_CHANGES
    changes = fold_block(number, decoded.events, state)
    state.apply(changes)
    rejections = sorted((*changes.rejections, *decoded.rejections), key=lambda item: item.log_index)
    return replace(changes, rejections=tuple(rejections))


def _decode(logs: Iterable[Log], decoder: LogDecoder) -> _Decoded:
    events, rejections = [], []
    for log in logs:
        try:
            events.append(PlacedEvent(log.log_index, decoder.decode(log.address, log.topics, log.data)))
        except DecodeError as error:
            rejections.append(Rejection(log.log_index, str(error)))
    return _Decoded(tuple(events), tuple(rejections))
