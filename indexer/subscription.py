"""New heads over a websocket. They only wake the poller: what is read, and when, stays the poller's.

A socket that drops is opened again after a growing pause; meanwhile the poller asks at its own pace.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.sync.connection import Connection

Wait = Callable[[float], object]
"""Waits so many seconds, or until there is something to do."""

MAX_MESSAGE = 2**20
"""Largest message, in bytes; a header has about 2,000."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds before a dropped socket is opened again: at first, and at most."""
_OPEN_SECONDS = 10
_JOIN_SECONDS = 2
_LOOK_SECONDS = 0.2  # between two looks at whether to stop
_LEAST_SECONDS = 0.005  # between two polls, however many messages come
_SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'


@contextmanager
def waiting(url: str, stop: threading.Event) -> Iterator[Wait]:
    """Give how to wait for the next poll: until `stop`, or a new head where there is a websocket URL."""
    if not url:
        yield stop.wait
        return
    subscription = _Subscription(url, stop)
    thread = threading.Thread(target=subscription.run, name="new-heads", daemon=True)
    thread.start()
    try:
        yield subscription.wait
    finally:
        subscription.end()
        thread.join(timeout=_JOIN_SECONDS)


class _Subscription:
    def __init__(self, url: str, stop: threading.Event) -> None:
        self._url = url
        self._stop = stop
        self._ended = threading.Event()
        self._wake = threading.Event()

    def wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self._stop.wait(min(_LEAST_SECONDS, seconds))
        while not self._stop.is_set() and (left := end - time.monotonic()) > 0:
            if self._wake.wait(min(_LOOK_SECONDS, left)):
                break
        self._wake.clear()

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        pause = FIRST_PAUSE
        while not self._over():
            try:
                with self._connected() as socket:
                    socket.send(_SUBSCRIBE)
                    while not self._over():
                        pause = FIRST_PAUSE if self._heard(socket) else pause
            except (OSError, WebSocketException, ValueError):
                self._rest(pause)
                pause = min(LONGEST_PAUSE, pause * 2)

    def _connected(self) -> ClientConnection:
        return connect(
            self._url, open_timeout=_OPEN_SECONDS, close_timeout=1, max_size=MAX_MESSAGE, compression=None, proxy=None
        )

    def _heard(self, socket: Connection) -> bool:
        """Wake the poller for any message: what it says is asked of a node anyway."""
        try:
            socket.recv(timeout=_LOOK_SECONDS)
        except TimeoutError:
            return False
        self._wake.set()
        return True

    def _rest(self, pause: float) -> None:
        waited = 0.0
        while waited < pause and not self._over():
            self._ended.wait(_LOOK_SECONDS)
            waited += _LOOK_SECONDS

    def _over(self) -> bool:
        return self._stop.is_set() or self._ended.is_set()
