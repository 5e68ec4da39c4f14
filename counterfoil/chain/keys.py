"""Keys come from an encrypted keystore file or from the environment, never from an argument (design section 10)."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount

from counterfoil.chain.errors import ChainError

KEY: Final = "COUNTERFOIL_PRIVATE_KEY"
KEYSTORE: Final = "COUNTERFOIL_KEYSTORE"
PASSWORD: Final = "COUNTERFOIL_KEYSTORE_PASSWORD"  # noqa: S105 - the variable's name

_MAX_BYTES: Final = 64 * 2**10
_MAX_SCRYPT: Final = 2**20 * 8
_MAX_ROUNDS: Final = 10_000_000


def load_account(environment: Mapping[str, str], ask: Callable[[], str] | None = None) -> LocalAccount:
    """The account named by the environment: a private key, or a keystore file with its password (`ask` asks for it).

    Raises ChainError, which never repeats a key or a password.
    """
    if environment.get(KEY):
        return _from_key(environment[KEY])
    if not environment.get(KEYSTORE):
        raise ChainError(f"There is no key to sign with: set {KEYSTORE} to an encrypted keystore file, or {KEY}.")
    document = _read(Path(environment[KEYSTORE]))
    password = environment.get(PASSWORD)
    if password is None and ask is not None:
        password = ask()
    if password is None:
        raise ChainError(f"The keystore needs its password: set {PASSWORD}.")
    return _decrypt(document, password)


def named_address(environment: Mapping[str, str]) -> str | None:
    """The address of the environment's key, in lower case: a keystore is not opened, it says whose it is.

    None where there is no key, or the keystore does not say. Raises ChainError.
    """
    if environment.get(KEY):
        return str(_from_key(environment[KEY]).address).lower()
    if not environment.get(KEYSTORE):
        return None
    said = str(_read(Path(environment[KEYSTORE])).get("address", "")).lower().removeprefix("0x")
    return f"0x{said}" if len(said) == 40 and not said.strip("0123456789abcdef") else None


def _from_key(key: str) -> LocalAccount:
    try:
        return _account(key.strip())
    except Exception:  # noqa: BLE001 - the cause may quote the key
        raise ChainError(f"{KEY} is no private key: give 0x and 64 hexadecimal digits.") from None


def _account(key: str | bytes) -> LocalAccount:
    account: LocalAccount = Account.from_key(key)
    return account


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ChainError(f"The keystore {path} cannot be read ({type(error).__name__}): check {KEYSTORE}.") from None
    if not isinstance(document, dict) or not _affordable(document):
        raise ChainError(f"{path} is no keystore file of version 3 that can be opened: check {KEYSTORE}.")
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


def _decrypt(document: dict[str, Any], password: str) -> LocalAccount:
    try:
        return _account(bytes(Account.decrypt(document, password)))
    except Exception:  # noqa: BLE001 - the cause may quote what was decrypted
        raise ChainError(f"The keystore does not open with that password: check {PASSWORD}.") from None
