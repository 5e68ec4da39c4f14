"""How many blocks to ask for at once, learnt from one node's answers. Pure."""

MANY_LOGS = 6000
FEW_LOGS = 2000
_GOOD_ANSWERS = 32
"""After so many answers in a row, a node is tried with more than it once refused."""


class RangeSize:
    """Grows by half while answers are small, halves where they are large or refused, from 1 to `largest` blocks."""

    def __init__(self, first: int, largest: int) -> None:
        self.blocks = min(first, largest)
        self._largest = self._ceiling = largest
        self._good = 0

    def refused(self, asked: int, usable: int | None = None) -> None:
        """Take less than the `asked` blocks: `usable`, where the node named it and it is less, or the half."""
        self.blocks = usable if usable is not None and 0 < usable < asked else max(1, asked // 2)
        self._ceiling = self.blocks
        self._good = 0

    def answered(self, logs: int) -> None:
        """Go by the size of a good answer."""
        self._good += 1
        if self._good >= _GOOD_ANSWERS:
            self._ceiling, self._good = min(self._largest, self._ceiling * 2), 0
        if logs > MANY_LOGS:
            self.blocks = max(1, self.blocks // 2)
        elif logs < FEW_LOGS:
            self.blocks = min(self._ceiling, self.blocks + self.blocks // 2 + 1)
