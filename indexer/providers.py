"""The nodes that the settings name: whom to ask next, who is set aside, and when all of them refuse.

One whole round is asked of one node, so that its answers belong together. A failure moves on to the next node. One
that lied, or that is on another chain, is set aside with its name and the reason: it is asked again only where all
others fail, or after a long time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from indexer.errors import (
    BadAnswerError,
    HistoryPrunedError,
    HoleError,
    LieError,
    NoHistoryError,
    RangeTooLargeError,
    RetryableError,
    UnavailableError,
    UserError,
)
from indexer.notices import Observer, ProviderChanged
from indexer.ranges import RangeSize
from indexer.reading import Reader
from indexer.source import BlockRange, Source

FIRST_ASIDE = 600.0
LONGEST_ASIDE = 6 * 3600.0
"""Seconds that a node is set aside: the first time, doubled with each lie, at most."""
SURE_OF_PRUNING = 6
"""So often in a row must a node say the same of an old block until that is believed: a sick node says it, too."""
_UNTIL_READY = 10
"""How many blocks to read at once where a reader takes over in a moment."""
_RANGES_UNTIL_READY = 100
"""After so many, the moment has passed."""
_SURE_OF_FAILURE = 3
"""So often in a row must every other node fail until one that was set aside is asked again."""


class Provider:
    """One node, with what was learnt about it."""

    def __init__(
        self, name: str, source: Source, size: RangeSize, reader: Reader | None = None, reader_blocks: int = 0
    ) -> None:
        """Have `reader` read ahead from when `reader_blocks` blocks are to come, until it is stopped."""
        self.name = name
        self.source = source
        self.size = size
        self._reader = reader
        self._reader_blocks = reader_blocks
        self.failures = 0
        self.ready_at = self.aside_until = 0.0
        self.is_aside = False
        self.lies = 0
        self.missing: list[str] = []
        self.refusal: UserError | None = None
        self._identified = False

    def identify(self, *, again: bool = False) -> None:
        """Check once that this is the deployment's chain, and `again` where something is odd."""
        if again or not self._identified:
            self._identified = False
            self.source.check_identity()
            self._identified = True

    def doubt(self) -> None:
        """Have the identity checked again: what answers next may be another node behind the same address."""
        self._identified = False

    def lacks_for_sure(self, error: Exception) -> bool:
        """Take note of an error, and tell whether it is always the same old block that this node does not have."""
        told = [str(error)] if isinstance(error, NoHistoryError) else []
        self.missing = self.missing + told if self.missing[-1:] == told else told
        return len(self.missing) >= SURE_OF_PRUNING

    def fetch(self, first: int, target: int) -> BlockRange:
        """Give a verified range from `first` as far as the node allows, at most to `target`."""
        if self._reader is not None and target - first + 1 >= self._reader_blocks:
            self._reader.start()  # it gets ready while this range is read and written here
        return self._fetch(self.source.fetch, first, target)

    def fetch_all(self, first: int, target: int) -> Iterator[BlockRange]:
        """Give one range after the other up to `target`, by the reader once it is ready."""
        reader, patience = self._reader, _RANGES_UNTIL_READY
        while first <= target:
            read = partial(self._read, reader) if reader and reader.is_ready else self.source.fetch
            until_ready = patience > 0 and reader is not None and reader.is_starting
            patience -= 1
            fetched = self._fetch(read, first, target, _UNTIL_READY if until_ready else None)
            yield fetched
            first = fetched.headers[-1].number + 1

    def _fetch(
        self, read: Callable[[int, int], BlockRange], first: int, target: int, most: int | None = None
    ) -> BlockRange:
        lie = None
        while True:
            asked = min(self.size.blocks, target - first + 1, most or target)
            try:
                fetched = read(first, first + asked - 1)
            except HoleError as error:
                lie = str(error)
                self.size.refused(asked)
            except RangeTooLargeError as error:
                self.size.refused(asked, error.blocks)
                if asked == 1:
                    raise
            except (BadAnswerError, UnavailableError):
                if asked != most:
                    self.size.refused(asked)  # an error without known words may mean the range, as a last resort
                raise
            else:
                if asked == self.size.blocks:  # the answer to a smaller range says nothing of this one
                    self.size.answered(len(fetched.logs))
                return fetched if lie is None else BlockRange(fetched.headers, fetched.logs, lie)

    def _read(self, reader: Reader, first: int, last: int) -> BlockRange:
        answer = reader.read(first, last, self.source.newest)
        self.source.note(answer.cost, answer.told)
        return answer.range()

    def stop(self) -> None:
        """Let go of what is being read, and of what read it."""
        if self._reader is not None:
            self._reader.stop()

    def close(self) -> None:
        """End what reads for this node."""
        if self._reader is not None:
            self._reader.close()


class Providers:
    """Takes the nodes in turn. `pauses` are the shortest and the longest wait after a node's failure, in seconds."""

    def __init__(
        self,
        providers: Sequence[Provider],
        *,
        pauses: tuple[float, float],
        tell: Observer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._all = tuple(providers)
        self._pauses = pauses
        self._tell = tell
        self._clock = clock
        self._turn = 0

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._all)

    def pick(self) -> tuple[Provider, float]:
        """Give whom to ask next, and how many seconds to wait before."""
        return self._picked(self._clock())

    def _picked(self, now: float) -> tuple[Provider, float]:
        in_turn = self._all[self._turn :] + self._all[: self._turn]
        trusted = [provider for provider in in_turn if provider.aside_until <= now]
        failing = all(provider.failures >= _SURE_OF_FAILURE for provider in trusted)
        chosen = min(in_turn if failing else trusted, key=lambda provider: max(0, provider.ready_at - now))
        if chosen.is_aside and chosen.aside_until <= now:
            chosen.is_aside = False
            self._tell(ProviderChanged(chosen.name, None))
        return chosen, max(0, chosen.ready_at - now)

    def move_on(self, provider: Provider) -> None:
        """Let the one after this one be the next."""
        self._turn = (self._all.index(provider) + 1) % len(self._all)

    def succeeded(self, provider: Provider) -> None:
        """Forget the failures of a node that answered a whole round."""
        provider.failures = 0
        provider.missing = []
        provider.refusal = None

    def failed(self, provider: Provider, error: RetryableError | UserError) -> float:
        """Note a failure and move on; gives the seconds to wait before the next node is asked.

        Raises the UserError where every node refuses.
        """
        provider.doubt()
        provider.failures += 1
        if provider.lacks_for_sure(error):
            error = HistoryPrunedError(_pruned(provider.name, error))
        if isinstance(error, UserError):
            self._refuse(provider, error)
        elif isinstance(error, LieError):
            self.set_aside(provider, str(error))
        now = self._clock()
        asked = error.wait if isinstance(error, RetryableError) else 0
        provider.ready_at = now + max(asked, pause_after(provider.failures, *self._pauses))
        self.move_on(provider)
        return self._picked(now)[1]

    def set_aside(self, provider: Provider, reason: str) -> None:
        """Trust a node no longer for a while."""
        now = self._clock()
        if provider.aside_until > now:
            return
        provider.lies += 1
        provider.aside_until = now + min(LONGEST_ASIDE, FIRST_ASIDE * 2.0 ** (min(provider.lies, 30) - 1))
        alone = "" if len(self._all) > 1 else " There is no other RPC address, so it is asked again."
        provider.is_aside = True
        self._tell(ProviderChanged(provider.name, reason + alone))

    def _refuse(self, provider: Provider, error: UserError) -> None:
        provider.refusal = error
        if all(one.refusal for one in self._all):
            raise error
        self.set_aside(provider, str(error))


def pause_after(failures: int, shortest: float, longest: float) -> float:
    """Give the seconds to wait after so many failures in a row: doubled with each, up to the longest."""
    return min(longest, shortest * 2.0 ** (min(failures, 30) - 1))


def _pruned(name: str, error: Exception) -> str:
    return (
        f"{name} no longer keeps the old blocks that the index needs ({error}) "
        "Name an RPC address that keeps the whole history in COUNTERFOIL_RPC_URL, or start from a copy of an index."
    )
