"""What the operator's commands have in common: the chain, the node that is meant, and texts that a contract takes."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import click

from counterfoil.agent.endpoint import MAX_ENDPOINT
from counterfoil.chain.connection import Chain, connect
from counterfoil.chain.contracts import (
    NOBODY,
    NodeRegistry,
    NodeState,
    RegistryParameters,
    RoutingLens,
    ServiceState,
    Token,
    word,
)
from counterfoil.cli.node_advice import highest_kept
from counterfoil.cli.options import Common
from counterfoil.cli.output import amount
from counterfoil.cli.signing import Operation, Role, Signing
from counterfoil.routing.reasons import plural
from indexer.errors import UserError
from indexer.http import is_url

UINT256_MAX = 2**256 - 1
NODE_ID = click.IntRange(1, UINT256_MAX)
AMOUNT = click.IntRange(0, UINT256_MAX)
MAX_LABEL = 64
"""Bytes of a category or a capability."""
MAX_TEXT = 256
"""Bytes of an endpoint or a metadata URI."""


class Text(click.ParamType):
    """A text of at most so many bytes: what a contract does not take fails without a reason there."""

    name = "text"

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """The text as it is."""
        if len(str(value).encode("utf-8", "surrogatepass")) > self._max:
            return self.fail(f"at most {self._max} bytes are stored: shorten it", param, ctx)
        return str(value)


class Endpoint(click.ParamType):
    """A URL that agents call: http or https, with a host and without credentials."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """The URL as it is."""
        if not _is_endpoint(str(value)):
            return self.fail("give a URL such as https://node.example, without credentials", param, ctx)
        return str(value)


def _is_endpoint(url: str) -> bool:
    return len(url) <= MAX_ENDPOINT and is_url(url) and "@" not in urlsplit(url).netloc


def connected(common: Common) -> Chain:
    """The chain that the settings name, closed when the command ends. Raises UserError and RetryableError."""
    return click.get_current_context().with_resource(closing(connect(common.settings)))


def operation(common: Common, how: Signing) -> Operation:
    """A run of a command that signs, on the chain that the settings name."""
    return Operation(connected(common), how, common.json)


def known_node(registry: NodeRegistry, node_id: int, at: int | None = None) -> NodeState:
    """A node. Raises UserError where there is none."""
    node = registry.node(node_id, at)
    if node.operator == NOBODY:
        raise UserError(f"There is no node {node_id}: see `counterfoil nodes`.")
    return node


def known_service(registry: NodeRegistry, service_id: int) -> tuple[ServiceState, Role]:
    """A service, and who alone may change it. Raises UserError where there is none."""
    service = registry.service(service_id)
    if service.node_id == 0:
        raise UserError(f"There is no service {service_id}: see `counterfoil services`.")
    return service, operator_of(service.node_id, known_node(registry, service.node_id))


def operator_of(node_id: int, node: NodeState) -> Role:
    """Who alone may change a node."""
    return Role(f"Node {node_id} is run by", node.operator)


def stake_token(registry: NodeRegistry) -> Token:
    """The token that the registry takes as stake."""
    return Token(registry.chain, registry.parameters().stake_token)


def what_it_pays_for(stake: int, parameters: RegistryParameters) -> str:
    """What a node's stake means for its traffic, a sentence."""
    slots = plural(stake // parameters.stake_per_slot, "session")
    said = f"A stake of {amount(stake)} pays for {slots} at a time"
    if stake >= parameters.min_stake:
        return f"{said}."
    return f"{said}, and no agent is routed to the node: that takes {amount(parameters.min_stake)}."


def prices_of_others(chain: Chain, category_id: str, service_id: int, at: int | None = None) -> list[int]:
    """The prices of a category's routable services but one."""
    key = word(category_id)
    size = NodeRegistry(chain).category_size(key, at)
    return [one.price for one in RoutingLens(chain).candidates(key, size, at) if one.service_id != service_id]


def how_the_price_stands(price: int, others: Sequence[int]) -> str:
    """Whether the lottery's guard keeps a price among others', a sentence."""
    highest = highest_kept(others)
    if highest is None:
        return "No other service of the category can be routed to, so the guard keeps any price."
    if price <= highest:
        return f"The guard keeps {amount(price)}: prices up to {amount(highest)} are at most 120% of the average."
    return (
        f"The guard drops {amount(price)}, which is over 120% of the category's average: only clients that pin the "
        f"service come. Prices up to {amount(highest)} are kept."
    )
