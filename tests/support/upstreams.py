"""The demo's services as real processes."""

import subprocess
import sys
from contextlib import contextmanager

from counterfoil.agent.forms import CallAnswer
from counterfoil.demo.processes import end
from indexer.http import BoundedHttp
from tests.support.chain import ROOT


@contextmanager
def upstream(kind, *arguments):
    """Run one of the demo's services until the block ends, and give its process and its URL."""
    command = [sys.executable, "-m", "counterfoil.demo.upstreams", kind, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            assert url, f"the service {kind} did not start"
            yield process, url
        finally:
            end(process)


def ask(url, request):
    """Make a call of a form over real HTTP."""
    with BoundedHttp(seconds=60, max_bytes=2**20) as http:
        got = http.request(request.method, url + request.path, content=request.body, headers=request.headers)
    return CallAnswer(got.status, got.content_type, got.body)
