"""What a case is: a fault, how it is played, and how it has to end."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.lab import Outcome


@dataclass(frozen=True)
class Size:
    """How large chains and faults are. `events` is per block; `cut` is where an answer is cut off, in logs.

    Chains of a case's own are so short that nothing after the deployment is final, and so long that 64 blocks can go.
    """

    blocks: int
    events: int
    own_blocks: int
    own_events: int
    cut: int
    range_limit: int
    result_limit: int


SMALL = Size(blocks=40, events=9, own_blocks=62, own_events=2, cut=60, range_limit=20, result_limit=100)
"""For `make test`."""
FULL = Size(blocks=300, events=14, own_blocks=62, own_events=8, cut=500, range_limit=13, result_limit=300)
"""For `make sim`: over 4,000 events, as the public indexers were measured with."""


@dataclass(frozen=True)
class Case:
    """A fault by its name in the table.

    `play` gets a Lab and gives a Verdict. `expects` is how it has to end; `in_bloom` is how it ends where logs are
    checked by bloom alone, if that is known to be worse. With `own_chain` the chain is built for this case and changed
    by it; otherwise it is shared and only read, and a `large` case gets the large one. `long` cases are for `make sim`
    alone: they wait for the product's own time limits, or are near to others.
    """

    name: str
    group: str
    play: Callable
    expects: Outcome = Outcome.EXACT
    in_bloom: Outcome | None = None
    own_chain: bool = False
    large: bool = False
    stores: tuple[str, ...] = ("sqlite", "postgresql")
    long: bool = False

    def expected(self, verify):
        return self.in_bloom if verify == "bloom" and self.in_bloom else self.expects
