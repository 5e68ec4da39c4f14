"""Keys come from an encrypted keystore file or from the environment, never from an argument (design section 10)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount

from counterfoil.chain.errors import ChainError


@dataclass(frozen=True, slots=True)
class Variables:
    """The environment variables that name an account."""

    key: str
    keystore: str
    password: str


OWN: Final = Variables("COUNTERFOIL_PRIVATE_KEY", "COUNTERFOIL_KEYSTORE", "COUNTERFOIL_KEYSTORE_PASSWORD")
RELAYER: Final = Variables(
    "COUNTERFOIL_RELAYER_PRIVATE_KEY", "COUNTERFOIL_RELAYER_KEYSTORE", "COUNTERFOIL_RELAYER_KEYSTORE_PASSWORD"
)

_MAX_BYTES: Final = 64 * 2**10
_MAX_SCRYPT: Final = 2**20 * 8
_MAX_ROUNDS: Final = 10_000_000


def load_account(
    environment: Mapping[str, str], ask: Callable[[], str] | None = None, variables: Variables = OWN
) -> LocalAccount:
    """The account named by the environment: a private key, or a keystore file with its password (`ask` asks for it).

    Raises ChainError, which never repeats a key or a password.
    """
    if environment.get(variables.key):
        return _from_key(environment[variables.key], variables)
    if not environment.get(variables.keystore):
        raise ChainError(
            f"There is no key to sign with: set {variables.keystore} to an encrypted keystore file, or {variables.key}."
        )
    document = _read(Path(environment[variables.keystore]), variables)
    password = environment.get(variables.password)
    if password is None and ask is not None:
        password = ask()
    if password is None:
        raise ChainError(f"The keystore needs its password: set {variables.password}.")
    return _decrypt(document, password, variables)


def load_relayer(environment: Mapping[str, str]) -> LocalAccount | None:
    """The account that pays gas for an agent without any, None where the environment names none."""
    if not (environment.get(RELAYER.key) or environment.get(RELAYER.keystore)):
        return None
    return load_account(environment, variables=RELAYER)


def named_address(environment: Mapping[str, str]) -> str | None:
    """The address of the environment's key, in lower case: a keystore is not opened, it says whose it is.

    None where there is no key, or the keystore does not say. Raises ChainError.
    """
    if environment.get(OWN.key):
        return str(_from_key(environment[OWN.key], OWN).address).lower()
    if not environment.get(OWN.keystore):
        return None
    said = str(_read(Path(environment[OWN.keystore]), OWN).get("address", "")).lower().removeprefix("0x")
    return f"0x{said}" if len(said) == 40 and not said.strip("0123456789abcdef") else None


def _from_key(key: str, variables: Variables) -> LocalAccount:
    try:
        return _account(key.strip())
    except Exception:  # noqa: BLE001 - the cause may quote the key
        raise ChainError(f"{variables.key} is no private key: give 0x and 64 hexadecimal digits.") from None


def _account(key: str | bytes) -> LocalAccount:
    account: LocalAccount = Account.from_key(key)
    return account


def _read(path: Path, variables: Variables) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ChainError(
            f"The keystore {path} cannot be read ({type(error).__name__}): check {variables.keystore}."
        ) from None
    if not isinstance(document, dict) or not _affordable(document):
        raise ChainError(f"{path} is no keystore file of version 3 that can be opened: check {variables.keystore}.")
    return document


def _affordable(document: dict[str, Any]) -> bool:
    # A hostile file could ask for more memory or time than there is.
    crypto = document.get("crypto")
    parameters = crypto.get("kdfparams") if isinstance(crypto, dict) else None
    if not isinstance(parameters, dict):
        return False
    numbers = [parameters.get(name, 1) for name in ("n", "r", "p", "c", "dklen")]
    if not all(type(number) is int and number > 0 for number in numbers):
        return False
    n, r, p, rounds, length = numbers
    return bool(n * r <= _MAX_SCRYPT and p <= 16 and rounds <= _MAX_ROUNDS and length <= 64)


def _decrypt(document: dict[str, Any], password: str, variables: Variables) -> LocalAccount:
    try:
        return _account(bytes(Account.decrypt(document, password)))
    except Exception:  # noqa: BLE001 - the cause may quote what was decrypted
        raise ChainError(f"The keystore does not open with that password: check {variables.password}.") from None
