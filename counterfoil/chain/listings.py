"""What a node lists and what it is capable of. No storage slot names these: they are read from the registry's logs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from web3.exceptions import BlockNotFound

from counterfoil.chain.connection import asking
from counterfoil.chain.contracts import NodeRegistry
from counterfoil.chain.errors import ChainError
from counterfoil.routing.lottery import category_id

_STEP: Final = 2000


@dataclass(frozen=True, slots=True)
class Listed:
    """A service of a node and its category, in words."""

    service_id: int
    category: str


def services_of(registry: NodeRegistry, node_id: int) -> tuple[Listed, ...]:
    """Every service that a node ever listed, in that order. Raises ChainError for logs that no registry wrote."""
    topics = [_topic(registry, "ServiceListed"), None, _word(node_id)]
    return tuple(_listed(log) for log in _logs(registry, topics))


def capabilities_of(registry: NodeRegistry, node_id: int) -> tuple[str, ...]:
    """A node's enabled capabilities, sorted. Raises ChainError for logs that no registry wrote."""
    found: dict[str, bool] = {}
    for log in _logs(registry, [_topic(registry, "CapabilityChanged"), _word(node_id)]):
        name, enabled = _decoded(["bytes", "bool"], log)
        found[_text(name)] = enabled
    return tuple(sorted(name for name, enabled in found.items() if enabled))


def _listed(log: Any) -> Listed:  # noqa: ANN401
    # The metadata URI is bytes here: its operator may have written what is no text.
    name, _, _ = _decoded(["bytes", "uint256", "bytes"], log)
    with asking("A ServiceListed log"):
        _, service_id, _, key = map(bytes, log["topics"])
        category = _text(name)
        if key != category_id(category):
            raise ChainError("A ServiceListed log names another category than its id: use another RPC with --rpc.")
        return Listed(int.from_bytes(service_id), category)


def _text(name: bytes) -> str:
    with asking("A name in the registry's logs"):
        return name.decode()


def _decoded(kinds: list[str], log: Any) -> tuple[Any, ...]:  # noqa: ANN401
    try:
        with asking("A log of the registry"):
            return decode(kinds, bytes(log["data"]))
    except DecodingError as error:
        raise ChainError("A log of the registry cannot be read: use another RPC with --rpc.") from error


def _topic(registry: NodeRegistry, event: str) -> str:
    return str(registry.contract.events[event]().topic)


def _word(number: int) -> str:
    return f"0x{number:064x}"


def _logs(registry: NodeRegistry, topics: list[str | None]) -> Iterator[Any]:
    first = registry.chain.deployment.contracts[registry.NAME].block
    last = registry.chain.head().number
    try:
        yield from _logs_between(registry, topics, first, last)
    except ChainError:
        # Many RPCs refuse long ranges.
        for start in range(first, last + 1, _STEP):
            yield from _logs_between(registry, topics, start, min(last, start + _STEP - 1))


def _logs_between(registry: NodeRegistry, topics: list[str | None], first: int, last: int) -> list[Any]:
    wanted: Any = {"address": registry.contract.address, "topics": topics, "fromBlock": first, "toBlock": last}
    with asking(f"The registry's logs in blocks {first} to {last}"):
        try:
            return list(registry.chain.web3.eth.get_logs(wanted))
        except BlockNotFound:
            return []
