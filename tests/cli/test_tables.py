"""Whatever texts and amounts an answer holds, what is printed fits 100 columns, and only a terminal gets colours."""

import os
import pty
import re
import subprocess
import sys

import pytest
from rich.cells import cell_len

from counterfoil.cli import output
from counterfoil.cli.receipt import print_receipt
from counterfoil.receipts import Skipped, digest
from counterfoil.routing.lottery import Candidate
from tests.support.chain import CATEGORY
from tests.support.receipts import example, request

WIDE = "価格の長い名前" * 30 + " e\u0301\u202e\U0001f9fe" * 30
UNBROKEN = "x" * 500
LARGEST = 2**128 - 1
TEXTS = {
    "category", "endpoint", "metadata_uri", "operator", "tool", "label", "sentence", "note", "capabilities", "status",
    "policy", "name", "part", "first_difference", "client", "signer",
}  # fmt: skip
COMMANDS = [
    ("services",),
    ("services", "--best", "bitcoin price"),
    ("service", 1),
    ("service", 1, "--experience"),
    ("nodes",),
    ("node", "show", 1),
    ("sessions",),
    ("session", 1),
    ("audit", "session", 1),
    ("index", "status"),
]


def swollen(value, text, name=""):
    """An answer with its texts replaced, and every amount as large as one can be."""
    if isinstance(value, dict):
        return {key: swollen(one, text, key) for key, one in value.items()}
    if isinstance(value, list):
        return [swollen(one, text, name) for one in value]
    if isinstance(value, str) and name in TEXTS:
        return text
    if isinstance(value, str) and value.isdecimal():
        return "9" * 78
    return value


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(map(str, words)))
@pytest.mark.parametrize("text", [WIDE, UNBROKEN], ids=["wide", "unbroken"])
def test_table__of_long_texts_and_amounts__fits_and_has_no_colour(ask, script, command, text):
    answer = ask(*command, "--json").json
    if command == ("services",):
        answer["services"] *= 2
    if command[0] == "audit":
        answer = {"as_of": ask("services", "--json").json["as_of"], "source": "index", "audit": answer}
    script.says(swollen(answer, text))
    found = ask(*command, "--api", script.url)

    assert found.code == 0, found.err
    lines = found.out.splitlines()
    assert max(cell_len(line) for line in lines) <= output.WIDTH
    assert all(line.isprintable() and line == line.rstrip() for line in lines)
    if command != ("index", "status"):
        assert text[:3] in found.out


def test_receipt__of_the_largest_amounts_and_long_reasons__fits(capsys):
    largest = {
        "candidates": [Candidate(one, LARGEST - 2**53 + one, LARGEST, 0, 0, 0, LARGEST) for one in (1, 1000, 2**52)],
        "request": request(category="data:" + "x" * 50, nonce=2**52, price_cap=LARGEST - 2**53 + 1000),
    }
    first = example(**largest).order[0]
    found = example(**largest, attempt=1, skipped=[Skipped(first, "no answer " * 20)])
    print_receipt(found, digest(found))
    lines = capsys.readouterr().out.splitlines()

    assert max(cell_len(line) for line in lines) <= output.WIDTH
    assert "no answer no answer" in " ".join(lines)
    assert "".join(lines).count("above") == 1


def on_a_terminal(*arguments, **changes):
    """What a command writes to a real terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80"} | changes
    command = [sys.executable, "-c", "from counterfoil.cli.main import main; main()", *map(str, arguments)]
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        said = bytearray()
        while piece := read(ours):
            said += piece
        assert process.wait(60) == 0
    os.close(ours)
    return said.decode()


def read(handle):
    """The next bytes of a terminal, none once nobody holds its other end."""
    try:
        return os.read(handle, 65536)
    except OSError:
        return b""


def test_services__on_a_terminal__has_bold_heads_and_fits_it(ask, scene):
    assert ask("services").code == 0  # sets the environment that the process gets
    colourful = on_a_terminal("services")
    plain = on_a_terminal("services", NO_COLOR="1", TERM="dumb")

    assert "\x1b[1m" in colourful
    assert max(cell_len(line) for line in re.sub("\x1b\\[[0-9;]*m", "", colourful).splitlines()) <= 80
    assert "\x1b" not in plain
    assert CATEGORY[:12] in plain
