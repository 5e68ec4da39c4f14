"""A wire between a client and a server that can be cut: then every connection breaks, and no new one is answered."""

import socket
import threading
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Wire:
    """Passes bytes on to `target`; `passed` counts the pieces that clients sent."""

    def __init__(self, target):
        parts = urlsplit(target)
        self._target = (parts.hostname, parts.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.passed = 0
        self._left = None
        self._is_cut = False
        self._open = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Break every connection, and every new one, until it is mended."""
        with self._lock:
            self._is_cut = True
            for one in self._open:
                _break(one)
            self._open.clear()

    def cut_after(self, pieces):
        """Cut once so many pieces more were sent."""
        with self._lock:
            self._left = pieces

    def mend(self):
        with self._lock:
            self._is_cut, self._left = False, None

    def close(self):
        self.cut()
        self._listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._is_cut:
                    client.close()
                else:
                    self._join(client)

    def _join(self, client):
        server = socket.create_connection(self._target)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open |= {client, server}
        threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
        threading.Thread(target=self._pass, args=(server, client, False), daemon=True).start()

    def _pass(self, source, sink, is_asking):
        with suppress(OSError):
            while piece := source.recv(2**16):
                if is_asking and self._counts_out():
                    self.cut()
                    break
                sink.sendall(piece)
        for one in (source, sink):
            _break(one)

    def _counts_out(self):
        """Count a piece, and say whether it is the one to cut at."""
        with self._lock:
            self.passed += 1
            if self._left is not None:
                self._left -= 1
            return self._left is not None and self._left <= 0


def _break(one):
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def wire(target):
    made = Wire(target)
    try:
        yield made
    finally:
        made.close()
