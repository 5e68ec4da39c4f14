"""The compiled contracts, as scripts/export_abi.py wrote them beside this module."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from counterfoil.chain.errors import ChainError

_FOLDER = Path(__file__).parent / "artifacts"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One contract's ABI and code; both codes are 0x and hexadecimal digits."""

    contract: str
    abi: Sequence[Mapping[str, Any]]
    bytecode: str
    runtime_bytecode: str


@cache
def artifact(contract: str) -> Artifact:
    """Read a contract's artifact. Raises ChainError when the installation lacks it."""
    path = _FOLDER / f"{contract}.json"
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ChainError(
            f"The artifact of {contract} is missing from this installation: write it with `make artifacts`."
        ) from error
    return Artifact(contract, found["abi"], found["bytecode"], found["runtime_bytecode"])
