"""Every command of the README runs, in the order in which it stands there."""

import re
import shlex
import sqlite3
from contextlib import closing

import pytest

from counterfoil.demo.cast import account
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
    return {"DIGEST": re.search(r"receipt\s+(0x\w{64})", listed).group(1), "FILE": str(copy)}


def test_readme__names_of_make_targets__are_those_of_the_makefile():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {command for command in (*blocks(), *spans()) if command.startswith("make ")}
    assert {command.split()[1] for command in named} <= targets
    assert named <= MAKE


def test_readme__commands_in_order__all_succeed(demo, places):
    """Signing commands get a funded development key, and the yes that a person would type."""
    key = "0x" + bytes(account(0).key).hex()
    ran = []
    for command in (*blocks(), *spans()):
        words = [places.get(word, word) for word in shlex.split(command)]
        if words[0] != "counterfoil":
            continue
        if words[1:3] == ["node", "list-service"]:
            register = ["counterfoil", "node", "register", "--endpoint", "http://127.0.0.1:9", "--stake", "0", "--yes"]
            assert demo.run(register, COUNTERFOIL_PRIVATE_KEY=key).returncode == 0
            words.append("--yes")
        done = demo.run(words, COUNTERFOIL_PRIVATE_KEY=key)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        ran.append(command)
    assert len(ran) >= 10


def test_readme__of_its_tree__names_every_folder_and_module_that_exists():
    tree = re.search(r"## The tree\n\n```text\n(.*?)```", README, re.DOTALL).group(1)
    named = set(re.findall(r"[\w.]+/|[\w]+\.(?:py|vy)", tree))
    for package in ("indexer", "counterfoil"):
        entries = [path for path in (ROOT / package).iterdir() if not path.name.startswith(("_", "py."))]
        missing = {path.name + "/" * path.is_dir() for path in entries} - named
        assert not missing, f"{package}: {missing}"
