"""The deployment file and the settings."""

import copy
import json

import pytest

from indexer.deployment import MAX_FILE_BYTES, load_deployment, parse_deployment
from indexer.errors import DeploymentError, SettingsError
from indexer.settings import Settings, load_settings
from tests.indexer.model import ADDRESSES, CHAIN_ID


@pytest.fixture
def document(chain):
    return chain.document()


def test_load_deployment__of_a_valid_file__gives_its_values(tmp_path, document, chain):
    document["contracts"]["RoutingLens"] = document["contracts"]["NodeRegistry"] | {"block": 0}
    document["contracts"]["SessionManager"]["block"] = 7
    path = tmp_path / "d.json"
    path.write_text(json.dumps(document))
    deployment = load_deployment(path)
    assert (deployment.chain_id, deployment.genesis_hash) == (CHAIN_ID, chain.blocks[0]["hash"])
    assert deployment.addresses() == ADDRESSES
    assert deployment.first_block == 1
    assert deployment.contracts["SessionManager"].block == 7
    assert "RoutingLens" in deployment.contracts


DAMAGE = {
    "version is not 1": lambda d: d.update(version=2),
    "contracts is not an object": lambda d: d.update(contracts=[]),
    "contracts lacks SessionManager": lambda d: d["contracts"].pop("SessionManager"),
    "chain_id is not a number": lambda d: d.update(chain_id="1"),
    "genesis_hash is not 0x": lambda d: d.update(genesis_hash="0x12"),
    "NodeRegistry: address is not a checksummed": lambda d: d["contracts"]["NodeRegistry"].update(address="0xAA"),
    "NodeRegistry: block is not a number": lambda d: d["contracts"]["NodeRegistry"].update(block=True),
    "NodeRegistry: block_hash is not": lambda d: d["contracts"]["NodeRegistry"].update(block_hash=None),
    "NodeRegistry: code_hash is not": lambda d: d["contracts"]["NodeRegistry"].pop("code_hash"),
    "NodeRegistry: transaction is not": lambda d: d["contracts"]["NodeRegistry"].pop("transaction"),
    "NodeRegistry: arguments is not": lambda d: d["contracts"]["NodeRegistry"].update(arguments=3),
    "NodeRegistry: the entry is not": lambda d: d["contracts"].update(NodeRegistry=3),
    "a name that is not a contract's": lambda d: d["contracts"].update({"../x": d["contracts"]["NodeRegistry"]}),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_parse_deployment__of_a_damaged_document__names_the_field(document, message):
    damaged = copy.deepcopy(document)
    DAMAGE[message](damaged)
    with pytest.raises(ValueError, match=message):
        parse_deployment(damaged)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b" " * (MAX_FILE_BYTES + 1)])
def test_load_deployment__of_a_file_that_is_none__says_to_deploy_again(tmp_path, content):
    path = tmp_path / "d.json"
    path.write_bytes(content)
    with pytest.raises(DeploymentError, match="deploy again"):
        load_deployment(path)


def test_load_deployment__of_a_missing_file__names_the_commands(tmp_path):
    with pytest.raises(DeploymentError, match="`ape run deploy`, or start with `make demo`"):
        load_deployment(tmp_path / "none.json")


def test_deployment_path__by_default__is_the_only_file_in_home(tmp_path):
    settings = Settings(home=tmp_path)
    with pytest.raises(DeploymentError, match=r"no deployment file in .*make demo"):
        settings.deployment_path()
    folder = tmp_path / "deployments"
    folder.mkdir()
    (folder / "1.json").touch()
    assert settings.deployment_path() == folder / "1.json"
    (folder / "2.json").touch()
    with pytest.raises(DeploymentError, match=r"several deployments .*1\.json, 2\.json.*COUNTERFOIL_DEPLOYMENT"):
        settings.deployment_path()
    assert Settings(home=tmp_path, deployment=tmp_path / "x").deployment_path() == tmp_path / "x"


def test_load_settings__from_the_environment__reads_the_prefix(monkeypatch, tmp_path):
    monkeypatch.setenv("COUNTERFOIL_HOME", str(tmp_path))
    monkeypatch.setenv("COUNTERFOIL_RPC_URL", "https://node.example/key")
    settings = load_settings()
    assert settings.rpc_url == "https://node.example/key"
    assert settings.database_url() == f"sqlite:///{tmp_path}/index.sqlite"
    assert Settings(database="other.sqlite").database_url() == "other.sqlite"


def test_load_settings__with_a_wrong_value__names_it_without_showing_it(monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_RPC_URL", "ftp://secret")
    monkeypatch.setenv("COUNTERFOIL_POLL_SECONDS", "-3")
    with pytest.raises(SettingsError, match=r"COUNTERFOIL_RPC_URL.*COUNTERFOIL_POLL_SECONDS") as caught:
        load_settings()
    assert "secret" not in str(caught.value)
