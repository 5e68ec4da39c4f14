"""Every command of the README runs, in the order in which it stands there."""

import re
import shlex
import sqlite3
import time
from contextlib import closing

import httpx
import pytest

from counterfoil.demo.processes import free_ports
from indexer.settings import load_settings
from tests.demo.conftest import ROOT

README = (ROOT / "README.md").read_text()
MAKE = {"make demo", "make test", "make lint", "make help", "make demo KEEP=1", "make demo SESSIONS=300"}


def blocks():
    """Lines of the shell blocks."""
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL):
        yield from (line.split("  #")[0].strip() for line in block.splitlines() if line.strip())


def spans():
    """Commands in running text and in tables."""
    yield from (found for found in re.findall(r"`([^`\n]+)`", README) if found.startswith(("counterfoil ", "make ")))


@pytest.fixture(scope="module")
def places(demo, tmp_path_factory):
    """What stands for the README's capital words."""
    listed = demo.run(["counterfoil", "session", "12"]).stdout
    copy = tmp_path_factory.mktemp("copy") / "index.sqlite"
    with closing(sqlite3.connect(demo.home / "index.sqlite")) as live, closing(sqlite3.connect(copy)) as made:
        live.backup(made)
    mine = tmp_path_factory.mktemp("mine") / "index.sqlite"
    digest = re.search(r"receipt\s+(0x\w{64})", listed).group(1)
    index_port, node_port = free_ports(2)
    return {"DIGEST": digest, "FILE": str(copy), "MINE": str(mine), "9700": str(index_port), "8600": str(node_port)}


def test_readme__names_of_make_targets__are_those_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {command for command in (*blocks(), *spans()) if command.startswith("make ")}
    assert {command.split()[1] for command in named} <= targets
    assert named <= MAKE


class Shell:
    """Runs the README's lines: commands, those that go on in the background (`&`), and what curl would ask."""

    def __init__(self, demo, places):
        self.demo = demo
        self.places = places
        self.ran = []
        self.background = []

    def run(self, line):
        for word, meant in self.places.items():
            line = re.sub(rf"\b{word}\b", meant, line)
        words = shlex.split(line.removesuffix("&"))
        if words[0] == "curl":
            self.ask(words[-1])
        elif words[0] == "counterfoil" and line.endswith("&"):
            self.background.append(self.demo.start(words))
        elif words[0] == "counterfoil":
            self.command(words)
        else:
            return
        self.ran.append(line)

    def command(self, words):
        done = self.demo.run(words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def ask(self, url):
        """Until the answer is 200, as a person would."""
        deadline = time.monotonic() + 60
        said = None
        with httpx.Client(trust_env=False) as client:
            while time.monotonic() < deadline:
                try:
                    answer = client.get(url)
                    if answer.status_code == 200:
                        return
                    said = answer.text
                except httpx.TransportError as error:
                    said = error
                time.sleep(0.1)
        raise AssertionError(f"{url}: {said}")

    def end(self):
        for process in self.background:
            process.terminate()
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, out + err


def test_readme__commands_in_order__all_succeed(demo, places):
    shell = Shell(demo, places)
    try:
        for line in (*blocks(), *spans()):
            shell.run(line)
    finally:
        shell.end()
    assert (len(shell.background), len(shell.ran) >= 30) == (3, True)


def test_readme__settings_file__is_one(tmp_path):
    (example,) = re.findall(r"^```toml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    path = tmp_path / "counterfoil.toml"
    path.write_text(example)
    settings = load_settings(config=path)
    assert (settings.verify, settings.listen_address()) == ("full", ("127.0.0.1", 9700))
    assert len(settings.rpc_urls()) == 2


def test_readme__of_its_tree__names_every_folder_and_module_that_exists():
    tree = re.search(r"## The tree\n\n```text\n(.*?)```", README, re.DOTALL).group(1)
    named = set(re.findall(r"[\w.]+/|[\w]+\.(?:py|vy)", tree))
    for package in ("indexer", "counterfoil"):
        entries = [path for path in (ROOT / package).iterdir() if not path.name.startswith(("_", "py."))]
        missing = {path.name + "/" * path.is_dir() for path in entries} - named
        assert not missing, f"{package}: {missing}"
