"""A node that is none of ours: it answers /health, takes vouchers, and does with a call what a test says."""

import socket
import struct
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from counterfoil.node.wire import read_voucher


class Liar:
    """`call` and `settle` are functions of a handler; `vouchers` are those that it got with calls."""

    def __init__(self, call, settle):
        self.call, self.settle = call, settle
        self.vouchers = []
        self.ended = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def _handler(liar):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        node = liar

        def do_GET(self):
            say(self, b"{}")

        def do_POST(self):
            self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.title(): value for name, value in self.headers.items()}
            self.voucher = read_voucher(headers)
            with suppress(OSError):  # whoever asked went away
                if self.path == "/settle":
                    liar.settle(self)
                else:
                    liar.vouchers.append(self.voucher)
                    liar.call(self)

        def log_message(self, *_):
            """Say nothing."""

    return Handler


def say(handler, body, *, length=None, status=200):
    """A whole answer, or one that says that it is of another length."""
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)
    handler.close_connection = length is not None


def nothing(handler):
    """Take the voucher and hang up."""
    handler.close_connection = True


def reset(handler):
    """Reset the connection."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def huge(handler):
    """An answer of more than an agent reads."""
    say(handler, b'"' + b"a" * 2**26 + b'"')


def endless(handler):
    """An answer without an end."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    while not handler.node.ended.is_set():
        handler.wfile.write(b"[" * 2**16)


def slow(handler):
    """An answer that comes byte by byte."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "10000")
    handler.end_headers()
    while not handler.node.ended.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def others(handler):
    """What another session was answered."""
    say(handler, b'{"echo": "somebody else asked this"}')


def right(handler):
    """What was asked for."""
    say(handler, b'{"echo": "right"}')


@contextmanager
def liar(call, settle=nothing):
    made = Liar(call, settle)
    thread = threading.Thread(target=made.server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield made
    finally:
        made.ended.set()
        made.server.shutdown()
        made.server.server_close()
        thread.join()
