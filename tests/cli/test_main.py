import subprocess
import sys

import pytest
from click.testing import CliRunner

from counterfoil.cli.main import COMMANDS, main
from indexer.errors import UnavailableError


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help__of_every_command__is_there(name):
    found = CliRunner().invoke(main, [name, "--help"])

    assert found.exit_code == 0
    assert found.output.startswith(f"Usage: main {name} ")


def test_help__of_all__lists_every_command():
    found = CliRunner().invoke(main, ["--help"])

    assert found.exit_code == 0
    assert all(f"\n  {name} " in found.output for name in COMMANDS)


def test_main__with_an_unknown_command__exits_2():
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["services", "--rpc", "ftp://x"], "--rpc-url: give a url"),
        (["services", "--database", "nosuch://x"], "database"),
        (["index", "run", "--database", "mysql://u:p@h/n"], "deployment"),
        (["index", "run", "--finality", "soon"], "--finality: give finalized, safe, or a number of blocks"),
        (["index", "run", "--listen", "everywhere"], "--listen: give host:port"),
        (["services", "--config", "none.toml"], "correct --config or counterfoil_config"),
    ],
)
def test_main__with_a_setting_that_cannot_be__exits_2_with_a_sentence(arguments, words):
    found = CliRunner(mix_stderr=False).invoke(main, arguments)

    assert (found.exit_code, found.stdout) == (2, "")
    assert words in found.stderr.lower()


def test_main__with_a_setting_of_the_environment_that_cannot_be__exits_2(monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_RPC_URL", "ftp://x")
    found = CliRunner(mix_stderr=False).invoke(main, ["services"])

    assert found.exit_code == 2
    assert found.stderr.startswith("Correct these settings: COUNTERFOIL_RPC_URL: ")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:99999", "http://[::1", "http://", "http://127.0.0.1:port", "http://:8545", "http://a b/",
        "http://\u00e9.example", "127.0.0.1:8545", "", "http://x:0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["flag", "environment"])
@pytest.mark.parametrize("command", [["index", "run"], ["index", "status"], ["audit", "session", "1"]])
def test_main__with_a_malformed_rpc_url__exits_2_with_a_sentence(url, place, command, monkeypatch, tmp_path):
    arguments = [*command, "--home", str(tmp_path)]
    if place == "flag":
        arguments += ["--rpc", url]
    else:
        monkeypatch.setenv("COUNTERFOIL_RPC_URL", url)
    found = CliRunner(mix_stderr=False).invoke(main, arguments)

    assert (found.exit_code, found.stdout) == (2, "")
    name = {"flag": "--rpc-url", "environment": "COUNTERFOIL_RPC_URL"}[place]
    assert f"{name}: give a URL such as http://127.0.0.1:8545" in found.stderr
    assert len(found.stderr.splitlines()) == 1


def test_main__when_the_source_may_recover__says_to_try_again(monkeypatch, tmp_path):
    def fail(_):
        raise UnavailableError("the node at http://node gave no answer")

    monkeypatch.setattr("indexer.service.index_status", fail)
    found = CliRunner(mix_stderr=False).invoke(main, ["index", "status", "--home", str(tmp_path)])

    assert found.exit_code == 2
    assert found.stderr == "The node at http://node gave no answer. Check the RPC, then try again.\n"


def test_counterfoil__as_a_process__answers_without_the_chains_library(tmp_path):
    """The commands that read the index alone must not pay for web3's start."""
    code = (
        "import sys; from click.testing import CliRunner; from counterfoil.cli.main import main; "
        "CliRunner().invoke(main, ['services', '--home', sys.argv[1]]); "
        "CliRunner().invoke(main, ['receipt', 'show', 'x', '--home', sys.argv[1]]); "
        "print('web3' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)

    assert found.stdout == "False\n"


def test_main__with_an_error_that_holds_escape_codes__prints_them_harmless(monkeypatch, tmp_path):
    def fail(_):
        raise UnavailableError("the node says \x1b[2J\x9b31m\nand more")

    monkeypatch.setattr("indexer.service.index_status", fail)
    found = CliRunner(mix_stderr=False).invoke(main, ["index", "status", "--home", str(tmp_path)], color=True)

    assert found.exit_code == 2
    assert found.stderr.removesuffix("\n").isprintable()
    assert found.stderr.startswith("The node says \ufffd[2J\ufffd31m\ufffdand more")
