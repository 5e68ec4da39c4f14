"""Keys, passwords and the upstream's credentials are in no file, no output and no argument of agent and node."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from eth_account import Account
from starlette.responses import JSONResponse, Response

from counterfoil.demo.processes import end, free_ports
from tests.support.chain import CATEGORY, person
from tests.support.market import market
from tests.support.upstream import upstream

COMMAND = Path(sys.executable).parent / "counterfoil"
PASSWORDS = {"alice": "alice-opens-7781", "olga": "olga-opens-9923", "rita": "rita-opens-5512"}
WRONG = "not-the-password-3344"
AUTHORIZATION = "Bearer upstream-credential-6650"
PATIENCE = 60
REFUSED = 2


def secrets():
    """Everything that must not be found, in every form in which it could stand somewhere."""
    keys = [bytes(person(name).key) for name in PASSWORDS]
    forms = [form for key in keys for form in (key, key.hex().encode(), key.hex().upper().encode())]
    words = [*PASSWORDS.values(), WRONG, AUTHORIZATION, AUTHORIZATION.split()[1]]
    return [*forms, *(word.encode() for word in words), *(word.encode("utf-16-le") for word in words)]


class Stage:
    """Starts real commands, each with its own output files, and reads their arguments while they live."""

    def __init__(self, scene, folder, how):
        self.scene, self.how = scene, how
        self.output, self.keys = folder / "output", folder / "keys"
        self.arguments = []
        self.count = 0
        for made in (self.output, self.keys):
            made.mkdir()

    def signer(self, name, prefix="COUNTERFOIL_", how=None):
        key = person(name).key
        if (how or self.how) == "private key":
            return {f"{prefix}PRIVATE_KEY": "0x" + bytes(key).hex()}
        path = self.keys / f"{name}.json"
        path.write_text(json.dumps(Account.encrypt(key, PASSWORDS[name], kdf="pbkdf2", iterations=1000)))
        return {f"{prefix}KEYSTORE": str(path), f"{prefix}KEYSTORE_PASSWORD": PASSWORDS[name]}

    @contextmanager
    def running(self, *arguments, **environment):
        self.count += 1
        home = {"COUNTERFOIL_HOME": str(self.scene.settings.home), "COUNTERFOIL_RPC_URL": self.scene.world.url}
        own = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")}
        with (
            (self.output / f"{self.count}.out").open("wb") as out,
            (self.output / f"{self.count}.err").open("wb") as err,
            subprocess.Popen(
                [COMMAND, *arguments],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                env={**own, **home, **environment},
            ) as process,
        ):
            self.arguments.append(Path(f"/proc/{process.pid}/cmdline").read_bytes())
            try:
                yield process
            finally:
                end(process)

    def agent(self, *arguments, **environment):
        given = {"COUNTERFOIL_AGENT_ALLOW_PRIVATE": "yes", **self.signer("alice"), **environment}
        with self.running("agent", *arguments, **given) as process:
            return process.wait(PATIENCE)

    @contextmanager
    def node(self, url):
        """Serve olga's node."""
        (port,) = free_ports(1)
        address = f"127.0.0.1:{port}"
        world = self.scene.world
        world.by("olga").send(world.registry.set_endpoint(1, f"http://{address}"))
        options = ["--node-listen", address, "--upstream", url, "--node-confirmations", "0", "--log-format", "json"]
        given = {"COUNTERFOIL_UPSTREAM_AUTHORIZATION": AUTHORIZATION, **self.signer("olga")}
        with self.running("node", "serve", "1", *options, **given) as process:
            while not _answers(f"http://{address}/health"):
                assert process.poll() is None
            yield f"http://{address}"

    def found(self):
        """Where a secret stands: the name of a file, or the arguments of a process."""
        folders = (self.scene.settings.home, self.output, self.keys)
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        texts = {str(path): path.read_bytes() for path in files}
        texts |= {f"arguments {at}": text for at, text in enumerate(self.arguments)}
        assert len(texts) > 15
        return sorted({name for name, text in texts.items() for secret in secrets() if secret in text})


def _answers(url):
    try:
        return httpx.get(url, timeout=5, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


async def _works(_):
    return JSONResponse({"price": 1})


async def _fails_loudly(request):
    """A service whose error page shows what it was sent."""
    return Response(repr(dict(request.headers)), 500)


@pytest.mark.parametrize("how", ["keystore", "private key"])
def test_agent_and_node__in_runs_that_work_and_fail__leave_no_secret_anywhere(tmp_path, how):
    home = tmp_path / "home"
    with market(home) as scene, upstream() as service:
        stage = Stage(scene, tmp_path, how)
        scene.world.node("olga", 5_000_000, 100)
        scene.world.by("alice")
        relayer = stage.signer("rita", "COUNTERFOIL_RELAYER_")
        with stage.node(service.url) as url:
            service.behave = _works
            assert stage.agent("call", CATEGORY, "--input", "1", "--yes", "--json", **relayer) == 0
            assert service.got[0].headers["authorization"] == AUTHORIZATION
            service.behave = _fails_loudly
            assert stage.agent("call", CATEGORY, "--input", "1", "--yes") == REFUSED
            assert httpx.get(url + "/metrics", trust_env=False).status_code == 200
        assert stage.agent("call", CATEGORY, "--input", "1", "--yes") == REFUSED  # the node is down
        assert stage.agent("call", CATEGORY, "--input", "1", "--dry-run", "--json") == 0
        assert stage.agent("resume", "--json") == 0
        assert stage.agent("runs", "--json") == stage.agent("status") == 0
        key = "0x" + bytes(person("alice").key).hex()
        locked = {**stage.signer("alice", how="keystore"), "COUNTERFOIL_KEYSTORE_PASSWORD": WRONG}
        assert stage.agent("status", **locked, COUNTERFOIL_PRIVATE_KEY="") == REFUSED
        assert stage.agent("status", COUNTERFOIL_PRIVATE_KEY=key + "00") == REFUSED
    assert list(home.glob("receipts/**/*.json"))
    assert (home / "agent" / "spending.sqlite").exists()
    assert (home / "nodes" / "1.sqlite").exists()
    assert stage.found() == []


def test_search__of_a_file_with_a_secret__finds_it(tmp_path):
    with market(tmp_path / "home") as scene:
        stage = Stage(scene, tmp_path, "keystore")
        for at in range(20):
            (stage.output / str(at)).write_bytes(b"nothing")
        assert stage.found() == []
        for secret in secrets():
            (stage.output / "leak").write_bytes(b"before" + secret + b"after")
            assert stage.found() == [str(stage.output / "leak")]
