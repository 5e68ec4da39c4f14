"""Settings, from the environment with the prefix COUNTERFOIL_; `counterfoil` uses the same ones."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict

from indexer.errors import DeploymentError, SettingsError


def _http_url(url: str) -> str:
    """Refuse what no request can be sent to; the message must not repeat the URL, which may hold a key."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise PydanticCustomError("rpc_url", "give a URL such as http://127.0.0.1:8545, with a port up to 65535")
    return url


class Settings(BaseSettings):
    """Where things are and how the source is asked. Times are seconds."""

    model_config = SettingsConfigDict(env_prefix="COUNTERFOIL_", frozen=True, extra="ignore")

    home: Path = Path(".counterfoil")
    rpc_url: Annotated[str, AfterValidator(_http_url)] = "http://127.0.0.1:8545"
    database: str = ""
    deployment: Path | None = None
    poll_seconds: float = Field(default=0.2, gt=0, le=3600)
    request_seconds: float = Field(default=30, gt=0, le=600)
    max_response_bytes: int = Field(default=64 * 2**20, ge=2**16, le=2**30)
    thorough: bool = False
    max_range_blocks: int = Field(default=2000, ge=1, le=100_000)

    def database_url(self) -> str:
        """Give the database's URL; the default is a SQLite file in `home`."""
        return self.database or f"sqlite:///{self.home / 'index.sqlite'}"

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


def load_settings() -> Settings:
    """Read the settings from the environment; SettingsError names the ones that are wrong, never their values."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = "; ".join(
            f"COUNTERFOIL_{'_'.join(map(str, item['loc'])).upper()}: {item['msg']}" for item in error.errors()
        )
        raise SettingsError(f"Correct these settings: {wrong}.") from None
