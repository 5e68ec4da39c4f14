"""Every setting: its name, range, default and meaning. A flag comes before the environment, that before the file.

`counterfoil` uses the same ones. docs/configuration.md is made from the fields below.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from indexer.errors import DeploymentError, SettingsError
from indexer.http import is_url, without_secrets

PREFIX: Final = "COUNTERFOIL_"
CONFIG: Final = "COUNTERFOIL_CONFIG"
CONFIG_FILE: Final = Path("counterfoil.toml")
VARIABLES: Final = {
    CONFIG: "The file of settings, instead of `counterfoil.toml` in the working directory.",
    "COUNTERFOIL_KEYSTORE": "The encrypted keystore file of the account that signs.",
    "COUNTERFOIL_KEYSTORE_PASSWORD": "The keystore's password; where it is not set, it is asked for.",
    "COUNTERFOIL_PRIVATE_KEY": "A private key instead of a keystore, for tests and development chains.",
    "COUNTERFOIL_RELAYER_KEYSTORE": "The encrypted keystore of an account that pays the gas of an agent without any.",
    "COUNTERFOIL_RELAYER_KEYSTORE_PASSWORD": "That keystore's password.",
    "COUNTERFOIL_RELAYER_PRIVATE_KEY": "A private key in the place of that keystore, for tests and development chains.",
    "COUNTERFOIL_UPSTREAM_AUTHORIZATION": "What `counterfoil node serve` sends its upstreams as `Authorization`.",
    "COUNTERFOIL_PROFILE": "The budget of the contracts' stateful tests: dev, ci or nightly.",
}
"""Variables with our prefix that are no settings: they never stand in a file or an argument."""

_MAX_FILE_BYTES = 64 * 2**10
_CLOSE = 0.75
_DEEPEST = 100_000
_MOST = 2**128 - 1
_CATEGORY = re.compile(r"[a-z0-9][a-z0-9.:-]{0,63}", re.ASCII)
_ADDRESS = re.compile(r"(?:(?P<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):)?(?P<port>\d{1,5})", re.ASCII)


def _http_urls(given: str) -> str:
    """Refuse what no request can be sent to; the message must not repeat a URL, which may hold a key."""
    urls = [url.strip() for url in given.split(",")]
    if not all(is_url(url, ("http", "https")) for url in urls):
        raise PydanticCustomError(
            "rpc_url",
            "give a URL such as http://127.0.0.1:8545, with a port up to 65535; several are separated by commas",
        )
    return ",".join(urls)


def _websocket_url(url: str) -> str:
    if url and not is_url(url, ("ws", "wss")):
        raise PydanticCustomError("rpc_websocket_url", "give a URL such as ws://127.0.0.1:8545, or nothing")
    return url


def _is_plain_http(url: str) -> bool:
    return is_url(url, ("http", "https")) and not any(mark in url for mark in "?#@")


def _upstream_pairs(given: str) -> list[tuple[str, str]]:
    """Split CATEGORY=URL pairs; a bare URL, which is for every category, has the category ""."""
    parts = [part.strip() for part in given.split(",")] if given else []
    pairs = [("", "", part) if part.startswith(("http://", "https://")) else part.partition("=") for part in parts]
    return [(category, url) for category, _, url in pairs]


def _upstreams(given: str) -> str:
    pairs = _upstream_pairs(given)
    categories = [category for category, _ in pairs]
    known = categories == [""] or all(_CATEGORY.fullmatch(category) for category in categories)
    if not known or len({*categories}) < len(pairs) or not all(_is_plain_http(url) for _, url in pairs):
        raise PydanticCustomError(
            "upstreams",
            "give one URL such as http://127.0.0.1:8000, or CATEGORY=URL pairs separated by commas, each category "
            "once, the URLs without user, password, ? and #",
        )
    return given


def _finality(given: object) -> object:
    if given in {"finalized", "safe"}:
        return given
    depth = int(given) if isinstance(given, str) and given.isascii() and given.isdecimal() else given
    if not isinstance(depth, int) or isinstance(depth, bool) or not 1 <= depth <= _DEEPEST:
        raise PydanticCustomError("finality", f"give finalized, safe, or a number of blocks from 1 to {_DEEPEST}")
    return depth


def _listen(given: str) -> str:
    found = _ADDRESS.fullmatch(given)
    if given and (found is None or int(found["port"]) > 65535):
        raise PydanticCustomError("listen", "give HOST:PORT such as 127.0.0.1:9700, with a port up to 65535")
    return given


def _api_url(url: str) -> str:
    if url and (not is_url(url, ("http", "https")) or "?" in url or "#" in url):
        raise PydanticCustomError("api", "give a URL such as https://counterfoil.example, without ? and #, or nothing")
    return url


class Settings(BaseSettings):
    """Where things are and how the source is asked. Times are seconds, sizes bytes, ranges blocks."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", use_attribute_docstrings=True, validate_default=False
    )

    home: Path = Path(".counterfoil")
    """The folder of deployments, index and receipts."""
    rpc_url: Annotated[str, AfterValidator(_http_urls)] = Field(
        "http://127.0.0.1:8545", examples=["https://one.example,https://two.example/v1"]
    )
    """The node's JSON-RPC over HTTP. Several URLs, separated by commas, are tried in turn. A URL that holds a key
    belongs in the environment or the file: everybody on the machine can read arguments. Messages name its
    host alone."""
    rpc_websocket_url: Annotated[str, AfterValidator(_websocket_url)] = Field("", examples=["ws://127.0.0.1:8545"])
    """A node's ws:// or wss:// URL whose new heads wake the index at once; without it the index asks every
    `poll_seconds`. Nothing that comes over it is believed."""
    database: str = Field("", examples=["postgresql://counterfoil@127.0.0.1/counterfoil"])
    """The index: a SQLite file or a database URL such as postgresql://user@host/name. Without it, `index.sqlite` in
    `home`."""
    deployment: Path | None = Field(None, examples=[".counterfoil/deployments/31337.json"])
    """The deployment file. Without it, the only one in the folder `deployments` of `home`."""
    api: Annotated[str, AfterValidator(_api_url)] = Field("", examples=["https://counterfoil.example"])
    """The URL of a Counterfoil API that reading commands ask in place of an index of your own. What it answers is its
    word: a receipt is checked against its digest and a draw is done again from its candidates, the rest is checked by
    form alone. A URL that holds a password belongs in the environment or the file; messages name its host alone. An
    index that flags name comes before it."""
    verify: Literal["bloom", "full"] = "bloom"
    """How logs are checked before they are written. `bloom`: against each block's bloom, and against the receipts where
    the bloom or an answer's end leaves a doubt. `full`: against the receipts of every block that may hold an event."""
    confirmations: int = Field(default=0, ge=0, le=10_000)
    """How many blocks the index stays behind the chain's head."""
    finality: Annotated[
        Literal["finalized", "safe"] | Annotated[int, Field(ge=1, le=_DEEPEST)], BeforeValidator(_finality)
    ] = "finalized"
    """Which blocks count as final: those that the node calls `finalized` or `safe`, or those so many blocks below the
    head. A reorganisation below a final block stops the index."""
    poll_seconds: float = Field(default=0.2, gt=0, le=3600)
    """How often the head is asked for once the index has caught up."""
    request_seconds: float = Field(default=30, gt=0, le=600)
    """How long one request to the node, or to an API, may take as a whole."""
    max_response_bytes: int = Field(default=64 * 2**20, ge=2**16, le=2**30)
    """The largest answer that is read; a larger one counts as a range that is too large."""
    max_range_blocks: int = Field(default=2000, ge=1, le=100_000)
    """The most blocks whose logs one request asks for. The index finds a smaller range by itself."""
    reader_blocks: int = Field(default=500, ge=0, le=2**53)
    """From how many blocks behind on another process reads and checks the chain while this one writes. It takes a
    second core and some 60 MiB while it lasts; 0 leaves all to one process."""
    raw_log_blocks: int = Field(default=0, ge=0, le=2**53)
    """How many blocks of raw logs below the final block are kept; 0 keeps all. Where some are gone, `counterfoil index
    rebuild` is not possible."""
    listen: Annotated[str, AfterValidator(_listen)] = Field("", examples=["127.0.0.1:9700"])
    """HOST:PORT where `counterfoil index run --follow` answers /health, /ready, /status and /metrics. Without a host it
    is 127.0.0.1, port 0 takes any free one. Without the setting nothing listens."""
    ready_lag_blocks: int = Field(default=32, ge=0, le=1_000_000)
    """How many blocks the index may lag behind and still count as ready."""
    stalled_seconds: float = Field(default=300, gt=0, le=86_400)
    """After so long without a sign of the loop /health answers 503, and after so long without an answer of the node
    /ready does."""
    log_format: Literal["text", "json"] = "text"
    """How `counterfoil index run` and `counterfoil node serve` report on stderr: sentences, or one JSON object a
    line."""
    node_upstreams: Annotated[str, AfterValidator(_upstreams)] = Field(
        "", examples=["data:crypto-price=http://127.0.0.1:8000,llm:completion=http://127.0.0.1:8001/v1"]
    )
    """Where a node's calls go: one URL for every category, or CATEGORY=URL pairs separated by commas. A session of
    another category is refused. Credentials for them stand in COUNTERFOIL_UPSTREAM_AUTHORIZATION."""
    node_listen: Annotated[str, AfterValidator(_listen)] = Field("127.0.0.1:8600", examples=["0.0.0.0:8600"])
    """HOST:PORT where `counterfoil node serve` takes calls. Without a host it is 127.0.0.1, port 0 takes any free
    one."""
    node_confirmations: int = Field(default=1, ge=0, le=64)
    """How many blocks below the head a session, and the deposit that a call needs, must stand already. On a chain that
    makes a block only for a transaction use 0: no second block would come."""
    node_max_calls: int = Field(default=64, ge=1, le=4096)
    """How many calls a node serves at a time; one more is refused as `overloaded`."""
    node_max_body_bytes: int = Field(default=2**20, ge=2**10, le=64 * 2**20)
    """The largest body of a call."""
    node_max_answer_bytes: int = Field(default=8 * 2**20, ge=2**10, le=256 * 2**20)
    """The largest answer of an upstream: a larger one is no answer and charges nothing. Every call in flight may take
    so much memory."""
    node_upstream_seconds: float = Field(default=60, gt=0, le=3600)
    """How long an upstream may take until the first byte of its answer's body."""
    node_call_seconds: float = Field(default=600, gt=0, le=86_400)
    """How long an upstream may take for its whole answer, and how long the node gives it to a client that reads
    slowly."""
    node_stop_seconds: float = Field(default=30, gt=0, le=3600)
    """How long calls in flight may go on after SIGTERM."""
    node_watch_seconds: float = Field(default=2, gt=0, le=60)
    """How often a node looks at the chain for sessions to settle."""
    node_settle_margin_seconds: int = Field(default=300, ge=0, le=86_400)
    """How long before it expires a session with served calls is settled; never more than a quarter of what was left of
    the session when the node first saw it."""
    node_settle_above: int = Field(default=0, ge=0, le=2**128 - 1)
    """When all unsettled vouchers of a node together pass this, in base units, the largest are settled until they do
    not; 0 is no limit."""
    node_coordinator: Annotated[str, AfterValidator(_api_url)] = Field("", examples=["https://coordinator.example"])
    """The URL below which signed heartbeats are posted, at /telemetry/heartbeat; without it they are only answered at
    /heartbeat."""
    node_heartbeat_seconds: float = Field(default=30, ge=1, le=3600)
    """How often a heartbeat is made."""

    agent_call_seconds: float = Field(default=90, gt=0, le=3600)
    """How long a request of an agent to a node may take as a whole."""
    agent_allow_private: Literal["no", "yes"] = "no"
    """Whether an agent calls nodes in private networks and on this machine: `yes` for a market of your own."""
    agent_max_per_call: int = Field(default=0, ge=0, le=_MOST)
    """A hard cap on what an agent pays for a call, in base units of the payment token; 0 is none. It holds when the
    lottery's own cap is relaxed."""
    agent_max_per_run: int = Field(default=0, ge=0, le=_MOST)
    """A hard cap on what a run may spend, in base units; 0 is none."""
    agent_max_per_day: int = Field(default=0, ge=0, le=_MOST)
    """A hard cap on what a home's agents spend in a day (UTC), in base units; 0 is none."""
    agent_max_per_operator: int = Field(default=0, ge=0, le=_MOST)
    """A hard cap on what one operator gets of a home's agents in a day (UTC), in base units; 0 is none."""

    def rpc_urls(self) -> tuple[str, ...]:
        """Give the URLs of `rpc_url`, in their order."""
        return tuple(self.rpc_url.split(","))

    def shown_rpc_urls(self) -> tuple[str, ...]:
        """Give the URLs of `rpc_url` without user, password, path and query: how messages name the nodes."""
        return tuple(without_secrets(url) for url in self.rpc_urls())

    def database_url(self) -> str:
        """Give the database's URL; the default is a SQLite file in `home`."""
        return self.database or f"sqlite:///{self.home / 'index.sqlite'}"

    def listen_address(self) -> tuple[str, int] | None:
        """Give the host and port of `listen`, None where nothing listens."""
        return _host_and_port(self.listen)

    def node_address(self) -> tuple[str, int]:
        """Give the host and port of `node_listen`."""
        return _host_and_port(self.node_listen) or ("127.0.0.1", 0)

    def upstreams(self) -> dict[str, str]:
        """Give the upstream URLs of `node_upstreams` by category; the one of every category under ""."""
        return dict(_upstream_pairs(self.node_upstreams))

    def deployment_path(self) -> Path:
        """Give the deployment file: the one that is set, else the only one in `home`/deployments.

        Raises DeploymentError when there is none, or several to choose from.
        """
        if self.deployment is not None:
            return self.deployment
        folder = self.home / "deployments"
        found = sorted(folder.glob("*.json")) if folder.is_dir() else []
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(path.name for path in found)
            raise DeploymentError(
                f"There are several deployments in {folder} ({names}): set COUNTERFOIL_DEPLOYMENT to one of them."
            )
        raise DeploymentError(
            f"There is no deployment file in {folder}: deploy with `ape run deploy`, or start with `make demo`."
        )

    def shown(self) -> dict[str, Any]:
        """Give every setting as it may be shown: URLs without user, password, path and query."""
        plain = self.model_dump(mode="json")
        return plain | {
            "rpc_url": ",".join(self.shown_rpc_urls()),
            "rpc_websocket_url": without_secrets(self.rpc_websocket_url) if self.rpc_websocket_url else "",
            "database": _shown_database(self.database),
            "api": without_secrets(self.api) if self.api else "",
            "node_upstreams": ",".join(
                f"{category}={without_secrets(url)}".lstrip("=") for category, url in self.upstreams().items()
            ),
            "node_coordinator": without_secrets(self.node_coordinator) if self.node_coordinator else "",
        }


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, where each comes from (`flag`, `environment`, the file's path or `default`), and what was no
    setting: variables that bear our prefix and are left alone.
    """

    settings: Settings
    origins: Mapping[str, str]
    ignored: tuple[str, ...]


def load_settings(flags: Mapping[str, object] | None = None, config: Path | None = None) -> Settings:
    """Read the settings; see `load`."""
    return load(flags, config).settings


def load(flags: Mapping[str, object] | None = None, config: Path | None = None) -> Loaded:
    """Read the settings: `flags` first, then the environment, then the file `config`, then the defaults.

    Without `config` the file is what COUNTERFOIL_CONFIG names, or counterfoil.toml where there is one. SettingsError
    names the settings that are wrong or unknown, and where they stand, never their values.
    """
    ignored = _foreign_variables()
    path = config or _config_path()
    layers: list[tuple[str, Mapping[str, Any]]] = [
        ("flag", {name: value for name, value in (flags or {}).items() if value is not None}),
        ("environment", EnvSettingsSource(Settings)()),
        (str(path), _read_file(path) if path else {}),
    ]
    values: dict[str, Any] = {}
    origins = dict.fromkeys(Settings.model_fields, "default")
    for origin, layer in reversed(layers):
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    try:
        return Loaded(Settings(**values), origins, ignored)
    except ValidationError as error:
        wrong = {str(item["loc"][0]): str(item["msg"]) for item in error.errors()}
        named = "; ".join(f"{_place(name, origins[name])}: {message}" for name, message in wrong.items())
        raise SettingsError(f"Correct these settings: {named}.") from None


def flag_of(name: str) -> str:
    """Give a setting's flag on the command line."""
    return "--" + name.replace("_", "-")


def variable_of(name: str) -> str:
    """Give a setting's environment variable."""
    return PREFIX + name.upper()


def _place(name: str, origin: str) -> str:
    named = {"flag": flag_of(name), "environment": variable_of(name)}
    return named.get(origin, f"{name} in {origin}")


def _host_and_port(listen: str) -> tuple[str, int] | None:
    found = _ADDRESS.fullmatch(listen)
    return None if found is None else ((found["host"] or "127.0.0.1").strip("[]"), int(found["port"]))


def _shown_database(given: str) -> str:
    if "://" not in given or given.startswith("sqlite"):
        return given
    return without_secrets(given) + urlsplit(given).path


# --- the environment and the file


def _foreign_variables() -> tuple[str, ...]:
    """List the variables that are no setting. One that is nearly a setting's name is a slip: SettingsError.

    The others are left alone: some systems set variables of their own that begin with a service's name.
    """
    known = {variable_of(name) for name in Settings.model_fields} | set(VARIABLES)
    foreign = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
    for name in foreign:
        meant = _closest(name.removeprefix(PREFIX), [right.removeprefix(PREFIX) for right in known])
        if meant:
            raise SettingsError(f"{name} is no setting: it is {PREFIX}{meant}; correct it, or unset it.")
    return tuple(foreign)


def _config_path() -> Path | None:
    named = os.environ.get(CONFIG)
    if named:
        return Path(named)
    return CONFIG_FILE if CONFIG_FILE.is_file() else None


def _read_file(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_FILE_BYTES + 1)
        values = tomllib.loads(raw.decode()) if len(raw) <= _MAX_FILE_BYTES else None
    except OSError as error:
        raise SettingsError(
            f"The settings file {path} cannot be read ({error.strerror}): correct --config or {CONFIG}."
        ) from None
    except (ValueError, RecursionError):
        raise SettingsError(f"The settings file {path} is no TOML: correct it, one `name = value` a line.") from None
    if values is None:
        raise SettingsError(f"The settings file {path} is over {_MAX_FILE_BYTES} bytes: name another with --config.")
    _check_names(path, values)
    return values


def _check_names(path: Path, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name not in Settings.model_fields:
            meant = _closest(name, list(Settings.model_fields))
            advice = f"it is {meant}" if meant else "`counterfoil config` lists them"
            raise SettingsError(f"{_quoted(name)} in {path} is no setting: {advice}; correct it, or take it out.")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise SettingsError(f"{name} in {path} is neither a text nor a number: correct it.")


def _closest(name: str, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name[:80], known, n=1, cutoff=_CLOSE)), None)


def _quoted(name: str) -> str:
    return f"`{name}`" if name.isprintable() and len(name) <= 80 else "A name"


__all__ = [
    "CONFIG", "CONFIG_FILE", "PREFIX", "VARIABLES", "Loaded", "Settings", "flag_of", "load", "load_settings",
    "variable_of",
]  # fmt: skip
