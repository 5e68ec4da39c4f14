"""`counterfoil node serve` as a process of its own, which can be killed and started again at the same address."""

import json
import os
import subprocess
import sys
import time

import httpx
import structlog
from click.testing import CliRunner

from counterfoil.cli.main import main
from counterfoil.demo.processes import free_ports
from indexer.settings import PREFIX
from tests.support.chain import person

PROGRAM = (sys.executable, "-c", "from counterfoil.cli.main import main; main()")
STARTED_SECONDS = 60


class NodeProcess:
    """One node of an operator, in front of an upstream. `settings` are flags without their dashes."""

    def __init__(self, home, rpc_url, operator, node_id, upstream, environment=None, **settings):
        self.home = home
        self.node_id = node_id
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = home / f"node-{node_id}.log"
        own = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        key = "0x" + bytes(person(operator).key).hex()
        self.environment = {
            **own,
            "COUNTERFOIL_CONFIG": os.devnull,
            "COUNTERFOIL_PRIVATE_KEY": key,
            **(environment or {}),
        }
        flags = {
            "home": home, "rpc-url": rpc_url, "upstream": upstream, "node-listen": f"127.0.0.1:{self.port}",
            "log-format": "json", "node-confirmations": 0, "node-watch-seconds": 0.2, **settings,
        }  # fmt: skip
        words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
        self.words = ["node", "serve", str(node_id), *words]
        self.process = None

    def start(self):
        """Start it, and wait until it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*PROGRAM, *self.words], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + STARTED_SECONDS
        with httpx.Client(trust_env=False, verify=False) as client:
            while not self._answers(client):
                assert self.process.poll() is None, self.log.read_text()[-2000:]
                assert time.monotonic() < deadline, self.log.read_text()[-2000:]
                time.sleep(0.02)

    def run(self, **environment):
        """Run the command here, for what it refuses: nothing else ends it."""
        try:
            return CliRunner(mix_stderr=False).invoke(main, self.words, env={**self.environment, **environment})
        finally:
            structlog.reset_defaults()

    def kill(self):
        """End it as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)

    def stop(self):
        """End it in order, and give its exit code."""
        self.process.terminate()
        return self.process.wait(60)

    def events(self):
        """What it logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def _answers(self, client):
        try:
            return client.get(self.url + "/health").status_code == 200
        except httpx.TransportError:
            return False
