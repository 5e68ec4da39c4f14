"""A server that answers whatever it is told to, for clients that must not believe it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Script:
    """What the server answers next: to every path the same, until it is changed. `asked` are the paths so far."""

    def __init__(self, url):
        self.url = url
        self.asked = []
        self.pages = None
        self.says(b"{}")

    def says(self, body, *, status=200, kind="application/json", **headers):
        self.status, self.headers = status, {"Content-Type": kind, **headers}
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()

    def refuses(self, kind, detail, status=400):
        problem = {"type": f"urn:counterfoil:problem:{kind}", "title": "No", "status": status, "detail": detail}
        self.says(problem, status=status, kind="application/problem+json")


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        script = self.server.script
        script.asked.append(self.path)
        if script.pages is not None:
            script.says(script.pages(self.path))
        self.send_response(script.status)
        for name, value in {**script.headers, "Content-Length": str(len(script.body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(script.body)

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_):
        """A client that stops reading is what some tests are about."""


@contextmanager
def scripted():
    """Serve a script on a free port until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.script = Script(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
