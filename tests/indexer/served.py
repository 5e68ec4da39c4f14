"""The in-memory node of the tests over HTTP, for what reads from a process of its own."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        many = isinstance(asked, list)
        with self.server.turn:
            answers = [self.server.answer(call) for call in (asked if many else [asked])]
        body = json.dumps(answers if many else answers[0]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    def answer(self, call):
        answer = {"jsonrpc": "2.0", "id": call["id"]}
        try:
            return answer | {"result": self.node.call(call["method"], call["params"])}
        except _RefusedError as error:
            return answer | {"error": {"code": -32000, "message": str(error)}}

    def handle_error(self, *_):
        """A client that was killed in the middle is what some tests are about."""


class _RefusedError(Exception):
    pass


def refuse(message):
    """A fault: the node answers with an error."""

    def fault(_answer, _params):
        raise _RefusedError(message)

    return fault


@contextmanager
def served(node):
    """Serve a node until the block ends; gives its URL, which holds a secret."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.node, server.turn = node, threading.Lock()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/secret-key"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
