"""The deployment file: which contracts, where, since which block. It is read as hostile input."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import DeploymentError
from indexer.events import CONTRACTS, OPTIONAL

MAX_FILE_BYTES = 1 << 20
_HASH = re.compile(r"0x[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")
_MAX_NUMBER = 2**63


@dataclass(frozen=True, slots=True)
class DeployedContract:
    """One contract: checksummed address, the block that created it, and keccak256 of its runtime code."""

    name: str
    address: str
    block: int
    block_hash: str
    transaction: str
    arguments: Mapping[str, str]
    code_hash: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """All contracts of one deployment on one chain."""

    chain_id: int
    genesis_hash: str
    contracts: Mapping[str, DeployedContract]

    def indexed(self) -> tuple[DeployedContract, ...]:
        """List the contracts whose events are indexed."""
        return tuple(self.contracts[name] for name in CONTRACTS if name in self.contracts)

    def addresses(self) -> dict[str, str]:
        """Map the indexed contracts' names to their lower-case addresses."""
        return {contract.name: contract.address.lower() for contract in self.indexed()}

    @property
    def first_block(self) -> int:
        """Give the first block that can hold an event."""
        return min(contract.block for contract in self.indexed())


def load_deployment(path: Path) -> Deployment:
    """Read and check a deployment file; DeploymentError says what is wrong and what to do."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise DeploymentError(
            f"The deployment file {path} cannot be read ({error.strerror}): "
            "deploy with `ape run deploy`, or start with `make demo`."
        ) from None
    if len(raw) > MAX_FILE_BYTES:
        raise DeploymentError(f"The deployment file {path} is over {MAX_FILE_BYTES} bytes: deploy again.")
    try:
        return parse_deployment(json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise DeploymentError(
            f"The deployment file {path} is not valid ({error}): deploy again with `ape run deploy`."
        ) from None


def parse_deployment(document: object) -> Deployment:
    """Build a Deployment from parsed JSON; ValueError names the first field that is wrong."""
    fields = _mapping(document, "the file")
    if fields.get("version") != 1:
        raise ValueError("version is not 1")
    contracts = _mapping(fields.get("contracts"), "contracts")
    missing = [name for name in CONTRACTS if name not in contracts and name not in OPTIONAL]
    if missing:
        raise ValueError(f"contracts lacks {', '.join(missing)}")
    return Deployment(
        chain_id=_number(fields, "chain_id"),
        genesis_hash=_hash(fields, "genesis_hash"),
        contracts={name: _contract(name, entry) for name, entry in contracts.items()},
    )


def _contract(name: str, entry: object) -> DeployedContract:
    if _NAME.fullmatch(name) is None:
        raise ValueError("contracts holds a name that is not a contract's")
    try:
        fields = _mapping(entry, "the entry")
        arguments = _mapping(fields.get("arguments"), "arguments")
        return DeployedContract(
            name=name,
            address=_address(fields),
            block=_number(fields, "block"),
            block_hash=_hash(fields, "block_hash"),
            transaction=_hash(fields, "transaction"),
            arguments={key: str(value) for key, value in arguments.items()},
            code_hash=_hash(fields, "code_hash"),
        )
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _mapping(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not an object")  # noqa: TRY004
    return value


def _number(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MAX_NUMBER:
        raise ValueError(f"{name} is not a number from 0 to 2^63")
    return value


def _address(fields: Mapping[str, object]) -> str:
    from eth_utils.address import is_checksum_address  # a tenth of a second, which a process that only reads is spared

    value = fields.get("address")
    if not isinstance(value, str) or not is_checksum_address(value):
        raise ValueError("address is not a checksummed address")
    return value


def _hash(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or _HASH.fullmatch(value) is None:
        raise ValueError(f"{name} is not 0x and 64 lower-case hex digits")
    return value
