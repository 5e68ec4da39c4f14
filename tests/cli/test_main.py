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
    [(["services", "--rpc", "ftp://x"], "rpc_url"), (["services", "--database", "nosuch://x"], "database")],
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
