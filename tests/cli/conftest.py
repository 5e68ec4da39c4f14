import json

import pytest
import structlog
from click.testing import CliRunner

from counterfoil.api.app import create_app
from counterfoil.chain.keys import OWN
from counterfoil.cli.main import main
from indexer.query import open_store
from tests.api.test_services import scene  # noqa: F401
from tests.support.busy import busy_world
from tests.support.chain import anvil, deploy
from tests.support.market import serving
from tests.support.scripted import scripted


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


@pytest.fixture(scope="module")
def api(scene):  # noqa: F811
    with (
        open_store(scene.settings.database_url()) as store,
        serving(create_app(store, scene.world.receipts)) as url,
    ):
        yield url


@pytest.fixture(scope="module")
def places(scene):  # noqa: F811
    """What stands for the capital words of the commands."""
    rows = Ran(
        CliRunner(mix_stderr=False).invoke(main, ["sessions", "--json", "--home", str(scene.settings.home)])
    ).json
    first = rows["sessions"][0]
    return {
        "OPERATOR": scene.world.by("olga").address,
        "CLIENT": scene.world.by("alice").address,
        "SESSION": first["session_id"],
        "PREFIX": first["session_id"][2:20].upper(),
        "DIGEST": first["decision"],
    }


@pytest.fixture
def ask(scene, places, monkeypatch):  # noqa: F811
    """Run a command whose settings come from the environment alone, so that --api is all that differs."""
    monkeypatch.setenv("COUNTERFOIL_HOME", str(scene.settings.home))
    monkeypatch.setenv("COUNTERFOIL_RPC_URL", scene.world.url)

    def command(*arguments):
        words = [str(places.get(one, one)) for one in arguments]
        return Ran(CliRunner(mix_stderr=False).invoke(main, words))

    return command


@pytest.fixture
def script():
    with scripted() as made:
        yield made


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    """A chain with the contracts and no index."""
    with anvil() as url:
        world = deploy(url, tmp_path_factory.mktemp("town"))
        yield world
        world.chain.close()


@pytest.fixture
def operate(town, monkeypatch):
    """Run a command of `counterfoil node` in the town, with somebody's key or none."""

    def command(*arguments, by=None):
        monkeypatch.delenv(OWN.key, raising=False)
        if by is not None:
            monkeypatch.setenv(OWN.key, "0x" + bytes(town.by(by).account.key).hex())
        words = ["node", *map(str, arguments), "--home", str(town.home), "--rpc", town.url]
        return Ran(CliRunner(mix_stderr=False).invoke(main, words))

    return command
