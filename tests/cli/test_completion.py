import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from counterfoil.cli.main import main

STARTED = 60
"""Seconds after which a shell that hangs fails a test."""


def script(shell):
    found = CliRunner(mix_stderr=False).invoke(main, ["completion", shell])
    assert (found.exit_code, found.stderr) == (0, "")
    return found.stdout


@pytest.fixture
def path(tmp_path):
    """A PATH with this checkout's `counterfoil` before any other."""
    program = tmp_path / "counterfoil"
    program.write_text(f"#!{sys.executable}\nfrom counterfoil.cli.main import main\nmain()\n")
    program.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def bash(code, path, *options):
    done = subprocess.run(
        ["bash", "--norc", *options], input=code, env={**os.environ, "PATH": path}, check=False,
        capture_output=True, text=True, timeout=STARTED,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_completion__of_bash__is_a_script_that_bash_can_read(path):
    assert bash(script("bash"), path, "-n") == []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("counterfoil serv", ["serve", "service", "services"]),
        ("counterfoil node re", ["register", "resume-service"]),
        ("counterfoil services --ap", ["--api"]),
        ("counterfoil sessions --status o", ["open"]),
        ("counterfoil completion f", ["fish"]),
    ],
)
def test_completion__in_bash__offers_what_goes_on_so(path, words, offered):
    typed = f"COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}"
    lines = bash(
        f"{script('bash')}\n{typed}; _counterfoil_completion counterfoil; printf '%s\\n' \"${{COMPREPLY[@]}}\"", path
    )

    assert sorted(lines) == offered


@pytest.mark.parametrize(
    ("shell", "words"), [("zsh", "#compdef counterfoil"), ("fish", "complete --no-files --command counterfoil")]
)
def test_completion__of_other_shells__is_theirs(shell, words):
    assert words in script(shell)
    assert f"_COUNTERFOIL_COMPLETE={shell}_complete" in script(shell)


def test_completion__of_an_unknown_shell__names_the_known_ones():
    found = CliRunner(mix_stderr=False).invoke(main, ["completion", "tcsh"])

    assert found.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in found.stderr
