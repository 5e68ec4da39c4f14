"""A clock that a test moves by hand."""


class Clock:
    """Gives seconds since an arbitrary start, as `time.monotonic` does."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
