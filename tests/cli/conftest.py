import json

import pytest
import structlog
from click.testing import CliRunner

from counterfoil.cli.main import main
from tests.support.busy import busy_world


@pytest.fixture(scope="session")
def busy(tmp_path_factory):
    with busy_world(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch, tmp_path):
    """No setting of whoever runs the tests reaches a command."""
    import os

    for name in list(os.environ):
        if name.startswith("COUNTERFOIL_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _own_logs():
    """A command configures the log of its process: no other test is to see that."""
    yield
    structlog.reset_defaults()


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, result):
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(busy):
    """Run a command over the busy world."""

    def command(*arguments, home=busy.home, rpc=busy.world.url):
        where = ["--home", str(home), "--rpc", rpc]
        return Ran(CliRunner(mix_stderr=False).invoke(main, [*map(str, arguments), *where]))

    return command
