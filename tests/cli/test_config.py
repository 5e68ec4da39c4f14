import json

from click.testing import CliRunner

from counterfoil.cli.main import main
from indexer.settings import Settings


def config(*arguments):
    found = CliRunner(mix_stderr=False).invoke(main, ["config", *arguments])
    assert (found.exit_code, found.stderr) == (0, ""), found.stderr
    return found.stdout


def test_config__of_settings_from_everywhere__says_where_each_comes_from(monkeypatch, tmp_path):
    (tmp_path / "counterfoil.toml").write_text('verify = "full"\nconfirmations = 4\n')
    monkeypatch.setenv("COUNTERFOIL_CONFIRMATIONS", "5")
    *table, said = config("--listen", "9700").splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in table}

    assert rows["setting"] == ["value", "from"]
    assert rows["verify"] == ["full", "counterfoil.toml"]
    assert rows["confirmations"] == ["5", "environment"]
    assert rows["listen"] == ["9700", "flag"]
    assert rows["poll_seconds"] == ["0.2", "default"]
    assert said == "A setting's variable is COUNTERFOIL_ and its name in capitals, such as COUNTERFOIL_HOME."
    assert set(rows) == {"setting", *Settings.model_fields}


def test_config__as_json__has_every_setting_and_what_is_ignored(monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_SERVICE_HOST", "10.0.0.1")
    document = json.loads(config("--json", "--finality", "12"))

    assert document["settings"]["finality"] == {"value": 12, "from": "flag"}
    assert document["settings"]["deployment"] == {"value": None, "from": "default"}
    assert set(document["settings"]) == set(Settings.model_fields)
    assert document["ignored"] == ["COUNTERFOIL_SERVICE_HOST"]


def test_config__of_urls_with_keys__shows_none(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTERFOIL_RPC_URL", "https://user:secret@node.example/secret?key=secret")
    (tmp_path / "counterfoil.toml").write_text('database = "postgresql://me:secret@db.example/x?password=secret"\n')

    for found in (config(), config("--json")):
        assert "https://node.example" in found
        assert "postgresql://db.example/x" in found
        assert "secret" not in found


def test_config__with_ignored_variables__names_them(monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_SERVICE_HOST", "10.0.0.1")
    assert config().splitlines()[-1] == "no settings, and ignored: COUNTERFOIL_SERVICE_HOST"
