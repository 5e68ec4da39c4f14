"""An answer on its way from the upstream to the client: its last piece waits until the call is paid for."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping

from counterfoil.node.book import Answer


class Relay:
    """Filled by the task that serves a call, emptied by the one that answers the client; each at its own pace.

    All but the last piece may be given at once; the last one once the call is kept. Both run on one event loop.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.first_at: float | None = None
        self.replayed = False
        self.kept = False
        self.error: Exception | None = None
        self._body = bytearray()
        self._free = 0
        self._changed = asyncio.Event()

    @property
    def size(self) -> int:
        """How many bytes of the body were taken."""
        return len(self._body)

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the answer's head."""
        self.status, self.headers = status, headers

    def piece(self, piece: bytes) -> None:
        """Take the next piece: those before it may be given."""
        if piece:
            self.first_at = self.first_at or time.monotonic()
            self._free = len(self._body)
            self._body += piece
            self._changed.set()

    def answer(self) -> Answer:
        """The whole answer, once all pieces were taken."""
        return Answer(self.status, self.headers, bytes(self._body))

    def keep(self) -> None:
        """The call is paid for: all of it may be given."""
        self.kept = True
        self._free = len(self._body)
        self._changed.set()

    def replay(self, answer: Answer) -> None:
        """Give the stored answer of a call that was paid for before."""
        self.head(answer.status, answer.headers)
        self._body += answer.body
        self.replayed = True
        self.keep()

    def fail(self, error: Exception) -> None:
        """There will be no whole answer."""
        self.error = error
        self._changed.set()

    async def begun(self) -> None:
        """Wait until something may be given, or nothing ever will."""
        while not (self._free or self._has_ended()):
            await self._wait()

    async def ended(self) -> None:
        """Wait for the end."""
        while not self._has_ended():
            await self._wait()

    async def pieces(self) -> AsyncIterator[bytes]:
        """What may be given, as soon as it may; ends early where the answer failed."""
        given = 0
        while given < self._free or not self._has_ended():
            if given == self._free:
                await self._wait()
                continue
            piece = bytes(self._body[given : self._free])
            given = self._free
            yield piece

    def _has_ended(self) -> bool:
        return self.kept or self.error is not None

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()
