"""Settings by flag, environment and file: precedence, ranges, slips, and that no message shows a value."""

import os
import re
from pathlib import Path

import pytest

from indexer.errors import SettingsError
from indexer.settings import CONFIG, PREFIX, VARIABLES, Settings, flag_of, load, load_settings, variable_of
from scripts import document_settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(tmp_path):
    def write(text, name="counterfoil.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


# --- where a value comes from


def test_load__with_one_setting_everywhere__takes_the_flag_then_the_environment_then_the_file(monkeypatch, file):
    file('rpc_url = "http://file:1"\nconfirmations = 7\nverify = "full"\n')
    monkeypatch.setenv("COUNTERFOIL_RPC_URL", "http://environment:1")
    monkeypatch.setenv("COUNTERFOIL_CONFIRMATIONS", "8")
    loaded = load({"rpc_url": "http://flag:1", "database": None})

    assert loaded.settings.rpc_url == "http://flag:1"
    assert (loaded.settings.confirmations, loaded.settings.verify, loaded.settings.database) == (8, "full", "")
    origins = {name: loaded.origins[name] for name in ("rpc_url", "confirmations", "verify", "database")}
    assert origins == {
        "rpc_url": "flag", "confirmations": "environment", "verify": "counterfoil.toml", "database": "default",
    }  # fmt: skip
    assert set(loaded.origins) == set(Settings.model_fields)


def test_load__of_a_named_file__takes_that_one(monkeypatch, file):
    file("confirmations = 1\n")
    monkeypatch.setenv(CONFIG, str(file("confirmations = 2\n", "second.toml")))
    assert load_settings().confirmations == 2
    assert load_settings(config=file("confirmations = 3\n", "third.toml")).confirmations == 3


def test_load__without_anything__is_the_defaults():
    loaded = load()
    assert loaded.settings.model_dump() == Settings().model_dump()
    assert set(loaded.origins.values()) == {"default"}


# --- what is refused, in which words


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("rpc_url", "http://node:1,ftp://secret", "several are separated by commas"),
        ("rpc_url", "http://node:1,", "give a URL such as"),
        ("rpc_websocket_url", "http://secret", "ws://127.0.0.1:8545"),
        ("verify", "secret", "'bloom' or 'full'"),
        ("confirmations", "-1", "greater than or equal to 0"),
        ("confirmations", "10001", "less than or equal to 10000"),
        ("finality", "secret", "finalized, safe, or a number of blocks from 1 to 100000"),
        ("finality", "0", "from 1 to 100000"),
        ("finality", "100001", "from 1 to 100000"),
        ("raw_log_blocks", "-1", "greater than or equal to 0"),
        ("listen", "secret", "HOST:PORT"),
        ("listen", "127.0.0.1:65536", "port up to 65535"),
        ("log_format", "secret", "'text' or 'json'"),
        ("poll_seconds", "0", "greater than 0"),
        ("poll_seconds", "nan", "less than or equal to 3600"),
        ("request_seconds", "inf", "less than or equal to 600"),
        ("max_response_bytes", "1", "greater than or equal to 65536"),
        ("max_range_blocks", "0", "greater than or equal to 1"),
        ("ready_lag_blocks", "1.5", "valid integer"),
        ("stalled_seconds", "0", "greater than 0"),
    ],
)
@pytest.mark.parametrize("place", ["flag", "environment", "file"])
def test_load__with_a_wrong_value__names_the_place_and_what_is_right(monkeypatch, file, name, value, words, place):
    flags = {}
    if place == "flag":
        flags[name] = value
        where = flag_of(name)
    elif place == "environment":
        monkeypatch.setenv(variable_of(name), value)
        where = variable_of(name)
    else:
        file(f'{name} = "{value}"\n')
        where = f"{name} in counterfoil.toml"
    with pytest.raises(SettingsError) as caught:
        load(flags)

    assert str(caught.value).startswith(f"Correct these settings: {where}: ")
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("confirmation = 1\n", "`confirmation` in counterfoil.toml is no setting: it is confirmations"),
        ("private_key = 1\n", "`private_key` in counterfoil.toml is no setting: `counterfoil config` lists them"),
        ('"\\u001b[2J" = 1\n', "A name in counterfoil.toml is no setting"),
        ("confirmations = true\n", "confirmations in counterfoil.toml is neither a text nor a number"),
        ("[rpc_url]\nx = 1\n", "rpc_url in counterfoil.toml is neither"),
        ("confirmations = \n", "counterfoil.toml is no TOML"),
        ("\ud800", "counterfoil.toml is no TOML"),
        ("a = " + "[" * 5000, "counterfoil.toml is no TOML"),
        ("#" * 70_000, "is over 65536 bytes"),
    ],
)
def test_load__of_a_file_that_cannot_be__says_what_to_correct(tmp_path, text, words):
    (tmp_path / "counterfoil.toml").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(SettingsError, match=re.escape(words)):
        load()


def test_load__of_a_named_file_that_is_missing__is_an_error(monkeypatch):
    monkeypatch.setenv(CONFIG, "none.toml")
    with pytest.raises(SettingsError, match=r"none\.toml cannot be read .*--config or COUNTERFOIL_CONFIG"):
        load()


def test_load__with_a_slip_in_a_variables_name__names_the_right_one(monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_CONFIRMATION", "5")
    with pytest.raises(SettingsError, match=r"COUNTERFOIL_CONFIRMATION is no setting: it is COUNTERFOIL_CONFIRMATIONS"):
        load()


def test_load__with_variables_that_others_set__leaves_them_alone_and_lists_them(monkeypatch):
    """A cluster that runs a service named counterfoil sets these in every container."""
    others = ("COUNTERFOIL_PORT", "COUNTERFOIL_PORT_8700_TCP", "COUNTERFOIL_SERVICE_HOST", "COUNTERFOIL_SERVICE_PORT")
    for name in (*others, *(set(VARIABLES) - {CONFIG})):
        monkeypatch.setenv(name, "x")
    assert load().ignored == others


# --- values with a form of their own


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("", None), ("9700", ("127.0.0.1", 9700)), ("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:80", ("::1", 80)),
        ("index.example:9700", ("index.example", 9700)),
    ],
)  # fmt: skip
def test_listen_address__of_every_form__is_host_and_port(given, address):
    assert Settings(listen=given).listen_address() == address


def test_rpc_urls__of_several__are_in_their_order():
    settings = Settings(rpc_url="http://one:1/key, https://two/x?k=v")
    assert settings.rpc_urls() == ("http://one:1/key", "https://two/x?k=v")


@pytest.mark.parametrize(("given", "value"), [("12", 12), ("safe", "safe"), (3, 3)])
def test_finality__as_text_or_number__is_read(given, value):
    assert Settings(finality=given).finality == value


def test_shown__of_urls_with_keys__shows_none():
    settings = Settings(
        rpc_url="https://u:key1@one.example/key2?k=key3,https://two.example/key4",
        rpc_websocket_url="wss://three.example/key5",
        database="postgresql://user:key6@db.example:5432/name?password=key7",
    )
    shown = settings.shown()
    assert shown["rpc_url"] == "https://one.example,https://two.example"
    assert shown["rpc_websocket_url"] == "wss://three.example"
    assert shown["database"] == "postgresql://db.example:5432/name"
    assert "key" not in repr(shown)


# --- documentation


def test_configuration_page__is_made_from_the_settings():
    assert document_settings.PATH.read_text() == document_settings.document(), "run `make docs`"


def test_settings__all__are_described():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("confirmations", "a whole number from 0 to 10000"),
        ("poll_seconds", "a number over 0 to 3600"),
        ("verify", "`bloom` or `full`"),
        ("finality", "`finalized` or `safe` or a whole number from 1 to 100000"),
        ("deployment", "a path"),
    ],
)
def test_kind__of_a_setting__says_its_values(name, words):
    field = Settings.model_fields[name]
    assert document_settings.kind(field.annotation, field.metadata) == words


def test_variables__of_the_sources__are_settings_or_declared():
    known = {variable_of(name) for name in Settings.model_fields} | set(VARIABLES)
    sources = [path for folder in ("indexer", "counterfoil", "scripts") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in sources for name in re.findall(r"\bCOUNTERFOIL_[A-Z_]+\b", path.read_text())}
    assert named - known <= {PREFIX}
    assert len(named) > 10


# --- the upstreams of a node


@pytest.mark.parametrize(
    ("given", "upstreams"),
    [
        ("", {}),
        ("http://127.0.0.1:8000/v1", {"": "http://127.0.0.1:8000/v1"}),
        (
            "http:x=https://one.example, data:y=http://two:1/a=b",
            {"http:x": "https://one.example", "data:y": "http://two:1/a=b"},
        ),
    ],
)
def test_upstreams__of_pairs__are_urls_by_category(given, upstreams):
    assert load({"node_upstreams": given}).settings.upstreams() == upstreams


@pytest.mark.parametrize(
    "given",
    [
        "secret", "a=secret", "a=ftp://secret", "http://a,http://secret", "a=http://b,http://secret",
        "a=http://b,a=http://secret", "A=http://secret", "a=http://me:secret@b", "http://b?key=secret", "http://b#secret",
        "a=http://secret,", "a=http://b:0/secret",
    ],
)  # fmt: skip
def test_upstreams__of_another_form__are_refused_without_their_text(given):
    with pytest.raises(SettingsError) as caught:
        load({"node_upstreams": given})
    assert str(caught.value).startswith("Correct these settings: --node-upstreams: give one URL such as ")
    assert "secret" not in str(caught.value)


def test_shown__of_upstreams__are_categories_and_hosts():
    settings = Settings(
        node_upstreams="a:b=http://one:1/secret,c=https://two/secret", node_coordinator="http://x/secret"
    )
    assert settings.shown()["node_upstreams"] == "a:b=http://one:1,c=https://two"
    assert settings.shown()["node_coordinator"] == "http://x"
    assert Settings(node_upstreams="http://one/secret").shown()["node_upstreams"] == "http://one"
