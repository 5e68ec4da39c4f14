"""Many HTTP clients in a process of their own: each asks, waits for the whole answer, and asks the next thing.

A client is a socket and some bytes, so that the clients cost little beside what they ask: how much of its time this
process was busy stands with the figures.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

_LENGTH = b"content-length:"
_GRACE_SECONDS = 600
Ends = Callable[[float], bool]


class Load(NamedTuple):
    """What clients found: answers a second, milliseconds, bytes of a body on average, and how busy they were (to 1)."""

    rate: float
    p50: float
    p99: float
    size: float
    busy: float


def load(port: int, paths: Sequence[str], clients: int, seconds: float, at_least: int = 0) -> Load:
    """Have clients ask a server of this machine, one path after the other and then from the beginning.

    They end after so many seconds, but not before they have so many answers. Raises RuntimeError where one is not 200.
    """
    asked = json.dumps({"port": port, "paths": paths, "clients": clients, "seconds": seconds, "at_least": at_least})
    patience = seconds + _GRACE_SECONDS
    command = [sys.executable, __file__]
    done = subprocess.run(command, check=False, input=asked, capture_output=True, text=True, timeout=patience)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return Load(*json.loads(done.stdout))


class _Client(asyncio.Protocol):
    """One connection that is kept; `taken` gets the seconds of each answer."""

    def __init__(self, requests: Iterator[bytes], ends: Ends, taken: list[float], sizes: list[int]) -> None:
        self._requests, self._ends, self._taken, self._sizes = requests, ends, taken, sizes
        self._held, self._missing, self._asked = b"", 0, 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed a connection"))

    def _ask(self) -> None:
        self._asked = time.perf_counter()
        self._transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._held += data
            head, found, body = self._held.partition(b"\r\n\r\n")
            if not found:
                return
            self._missing = self._length(head) - len(body)
            self._held = b""
        if not self._missing:
            self._answered()

    def _length(self, head: bytes) -> int:
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(head.decode().splitlines()[0]))
            self._transport.close()
        length = int(head.lower().partition(_LENGTH)[2].partition(b"\r\n")[0])
        self._sizes.append(length)
        return length

    def _answered(self) -> None:
        now = time.perf_counter()
        self._taken.append(now - self._asked)
        if not self._ends(now):
            self._ask()
        elif not self.done.done():
            self.done.set_result(None)
            self._transport.close()


async def _run(port: int, paths: Sequence[str], clients: int, seconds: float, at_least: int) -> Load:
    requests = cycle([f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() for path in paths])
    taken: list[float] = []
    sizes: list[int] = []
    loop, started, worked = asyncio.get_running_loop(), time.perf_counter(), time.process_time()

    def ends(now: float) -> bool:
        return now >= started + seconds and len(taken) >= at_least

    made = [
        await loop.create_connection(lambda: _Client(requests, ends, taken, sizes), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.done for _, client in made))
    passed, busy = time.perf_counter() - started, time.process_time() - worked
    taken.sort()
    p50, p99 = (1000 * taken[len(taken) * percent // 100] for percent in (50, 99))
    return Load(len(taken) / passed, p50, p99, sum(sizes) / len(sizes), busy / passed)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run(**json.loads(sys.stdin.read())))))
