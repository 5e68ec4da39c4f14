"""A scripted JSON-RPC proxy: a real HTTP server on loopback in front of a real node, with faults that can be combined.

A fault sees each request before it is forwarded, may send it to another node, may change each call's answer, and may
spoil the HTTP reply as a whole. Its random numbers are its own and come from the seed.
"""

import http.client
import json
import random
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

UPSTREAM_SECONDS = 60


@dataclass(frozen=True)
class Call:
    """One JSON-RPC call, alone or out of a batch."""

    method: str
    params: list
    id: object


@dataclass
class Reply:
    """What goes back over HTTP: `sent` bytes of the body only (None: all), after `held` seconds."""

    body: bytes
    status: int = 200
    headers: dict = field(default_factory=dict)
    sent: int | None = None
    held: float = 0


class Fault:
    """One way in which a node lies or fails. Subclasses override what they spoil."""

    name = "none"

    def seeded(self, seed):
        """Take the random numbers from a seed; the proxy calls it when the fault is switched on."""
        self.rng = random.Random(f"{self.name}/{seed}")
        return self

    def before(self, calls):
        """See a request before it is forwarded."""

    def upstream(self, calls):
        """Give the URL of the node that shall answer, None for the usual one."""

    def answer(self, call, answer):
        """Give what shall stand for the node's answer to a call."""
        return answer

    def reply(self, calls, reply):
        """Give what shall go back over HTTP."""
        return reply


class Proxy:
    """Answers at `url` for the node at `target`. `faults` may be changed at any time."""

    def __init__(self, target, seed=0):
        self.target = target
        self.seed = seed
        self.faults = ()
        self.requests = 0
        self.closing = threading.Event()
        self.lock = threading.RLock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def inject(self, *faults):
        """Answer with these faults from now on, and with no others."""
        with self.lock:
            self.faults = tuple(fault.seeded(self.seed) for fault in faults)

    def close(self):
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def exchange(self, body, nodes):
        """Forward a request and spoil what comes back."""
        document = json.loads(body)
        entries = document if isinstance(document, list) else [document]
        calls = [Call(entry["method"], entry["params"], entry["id"]) for entry in entries]
        with self.lock:
            self.requests += 1
            faults = self.faults
            for fault in faults:
                fault.before(calls)
            chosen = [url for fault in faults if (url := fault.upstream(calls)) is not None]
        try:
            answered = json.loads(nodes.ask((chosen or [self.target])[-1], body))
        except (OSError, http.client.HTTPException, ValueError):
            return Reply(b"the node is gone", 502)
        with self.lock:
            spoiled = _spoil(calls, answered, faults)
            reply = Reply(json.dumps(spoiled).encode(), headers={"Content-Type": "application/json"})
            for fault in faults:
                reply = fault.reply(calls, reply)
        return reply


@contextmanager
def proxied(target, seed=0):
    with Proxy(target, seed) as proxy:
        yield proxy


def _spoil(calls, answered, faults):
    if not isinstance(answered, list):
        return _spoil_one(calls[0], answered, faults)
    by_id = {answer["id"]: answer for answer in answered}
    return [_spoil_one(call, by_id[call.id], faults) for call in calls]


def _spoil_one(call, answer, faults):
    for fault in faults:
        answer = fault.answer(call, answer)
    return answer


class _Nodes:
    """Kept connections to the nodes, of one thread."""

    def __init__(self):
        self._open = {}

    def ask(self, url, body):
        try:
            return self._ask(url, body)
        except (OSError, http.client.HTTPException):  # the node may have closed a kept connection
            self._open.pop(url).close()
            return self._ask(url, body)

    def _ask(self, url, body):
        if url not in self._open:
            self._open[url] = http.client.HTTPConnection(urlsplit(url).netloc, timeout=UPSTREAM_SECONDS)
            self._open[url].connect()
            self._open[url].sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open[url].request("POST", "/", body, {"Content-Type": "application/json"})
        return self._open[url].getresponse().read()

    def close(self):
        for connection in self._open.values():
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that went away is no news; anything else is a fault of the proxy and must be seen."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.nodes = _Nodes()

    def finish(self):
        self.nodes.close()
        with suppress(ConnectionError):
            super().finish()

    def do_POST(self):
        proxy = self.server.proxy
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed while it asked
            self.close_connection = True
            return
        reply = proxy.exchange(body, self.nodes)
        if reply.held:
            proxy.closing.wait(reply.held)
        head = {"Content-Length": str(len(reply.body)), **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in head.items())]
        self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n" + reply.body[: reply.sent])
        if reply.sent is not None:
            self.close_connection = True

    def log_message(self, *_):
        """Say nothing."""
