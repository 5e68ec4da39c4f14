"""What a run tells of itself, as values: the loop gives them to an observer, and knows of no log, bar or metric."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from indexer.chain import Header
from indexer.errors import LockedError, RetryableError
from indexer.store.database import Store
from indexer.store.reader import Cursor

Outcome = Literal["advanced", "replaced", "current", "held"]
"""How a step ended: blocks were written; a branch was replaced; nothing was to be done; the head is below ours."""


@dataclass(frozen=True, slots=True)
class Listening:
    """The monitor answers at `url`."""

    url: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Another process writes, and this one stands by; told again and again until it is over."""

    error: LockedError


@dataclass(frozen=True, slots=True)
class Writing:
    """The index is open, and this process its writer."""

    store: Store


@dataclass(frozen=True, slots=True)
class Reading:
    """The blocks `first` to `last` are about to be read."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Stepped:
    """A step of the loop is over, and its transaction too.

    `head` is the node's newest block, `cursor` the index's, with its `timestamp` where it is known. `blocks` and `logs`
    count what the step wrote; `read_seconds` passed until its range was there and verified, `write_seconds` until it
    was written.
    """

    outcome: Outcome
    head: Header
    cursor: Cursor
    timestamp: int | None
    blocks: int
    logs: int
    read_seconds: float
    write_seconds: float


@dataclass(frozen=True, slots=True)
class Replaced:
    """A reorganisation: `depth` blocks above `ancestor` were undone. The step's own notice follows."""

    ancestor: int
    depth: int


@dataclass(frozen=True, slots=True)
class Retried:
    """A failure of the source, and the pause in seconds that follows it."""

    error: RetryableError
    seconds: float


@dataclass(frozen=True, slots=True)
class ProviderChanged:
    """A provider is set aside, and why; None: it is asked again. Its URL holds no secret."""

    provider: str
    set_aside: str | None


@dataclass(frozen=True, slots=True)
class Weakened:
    """A provider's logs cannot be verified as well as they should be, and why; told once of each."""

    provider: str
    why: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over, and the index about to be closed."""


Notice = Listening | Waiting | Writing | Reading | Stepped | Replaced | Retried | ProviderChanged | Weakened | Ended
Observer = Callable[[Notice], None]
"""Called from the loop's thread, Weakened also from the one that reads ahead; must return soon and raise nothing."""


def silent(_: Notice) -> None:
    """Observe nothing."""


def all_of(*observers: Observer) -> Observer:
    """Make several observers one; they are told in their order."""

    def tell(notice: Notice) -> None:
        for observer in observers:
            observer(notice)

    return tell
