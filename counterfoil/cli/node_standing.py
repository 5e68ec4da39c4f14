"""Where a node stands: read from the chain at one block, and what only an index knows."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from counterfoil.agent.endpoint import EndpointError, resolve
from counterfoil.agent.node_client import MAX_ANSWER, NodeClient, NodeError
from counterfoil.asking import Answers, Rows, SessionsOf, open_answers
from counterfoil.chain.connection import Block, Chain
from counterfoil.chain.contracts import NodeRegistry, NodeState, ReputationLedger, SessionManager
from counterfoil.chain.listings import Listed, capabilities_of, services_of
from counterfoil.cli.node_advice import ServiceStanding, Standing, highest_kept
from counterfoil.cli.operating import known_node, prices_of_others
from indexer.errors import IndexerError, QuestionError
from indexer.http import BoundedHttp
from indexer.settings import Settings

PROBE_SECONDS: Final = 10

_PAGE: Final = 1000
_MAX_PAGES: Final = 100


@dataclass(frozen=True, slots=True)
class Indexed:
    """What an index knows of a node's sessions as of `block`: how many are settled, and what they paid (base units)."""

    block: int
    settled_sessions: int
    paid: int


@dataclass(frozen=True, slots=True)
class Seen:
    """All that `node status` tells. `indexed` is None where no index answers, and `no_index` says why."""

    block: Block
    chain_id: int
    node: NodeState
    unpaid_ratings: int
    capabilities: tuple[str, ...]
    standing: Standing
    indexed: Indexed | None
    no_index: str


def look(chain: Chain, settings: Settings, node_id: int, *, probe: bool, allow_private: bool) -> Seen:
    """Read a node. Raises UserError where there is none."""
    registry, manager, block = NodeRegistry(chain), SessionManager(chain), chain.head()
    node, parameters = known_node(registry, node_id, block.number), registry.parameters(block.number)
    ratings = ReputationLedger(chain).ratings(node_id, block.number)
    standing = Standing(
        node_id=node_id,
        now=block.timestamp,
        stake=node.stake,
        min_stake=parameters.min_stake,
        stake_per_slot=parameters.stake_per_slot,
        unbonding=node.unbonding,
        release_at=node.release_at,
        holds=node.holds,
        active_sessions=manager.active_sessions(node_id, block.number),
        rating_sum=ratings.rating_sum,
        rating_count=ratings.rating_count,
        credit=manager.credit_of(node.operator, block.number),
        services=tuple(_service(registry, one, block.number) for one in services_of(registry, node_id)),
        unreachable=_unreachable(node.endpoint, probe=probe, allow_private=allow_private),
    )
    indexed, no_index = _indexed(settings, chain.chain_id, node_id)
    capabilities = capabilities_of(registry, node_id)
    return Seen(block, chain.chain_id, node, ratings.unpaid_count, capabilities, standing, indexed, no_index)


def _service(registry: NodeRegistry, listed: Listed, block: int) -> ServiceStanding:
    state = registry.service(listed.service_id, block)
    others = prices_of_others(registry.chain, state.category_id, listed.service_id, block)
    return ServiceStanding(
        service_id=listed.service_id,
        category=listed.category,
        price=state.price,
        active=state.active,
        routable=registry.is_routable(listed.service_id, block),
        others=len(others),
        highest_kept=highest_kept(others),
    )


def _unreachable(endpoint: str, *, probe: bool, allow_private: bool) -> str:
    """Why agents may not reach an endpoint. Without `probe` nothing is sent to it, and no name is looked up."""
    if not probe and not _has_address(endpoint):
        return ""
    try:
        resolve(endpoint, allow_private=allow_private)
        if probe:
            with BoundedHttp(seconds=PROBE_SECONDS, max_bytes=MAX_ANSWER) as http:
                NodeClient(endpoint, http, allow_private).probe()
    except EndpointError as error:
        return f"Agents do not call the endpoint {endpoint}: {error}"
    except NodeError as error:
        return f"The endpoint {endpoint} does not answer /health: {error}"
    return ""


def _has_address(endpoint: str) -> bool:
    try:
        host = urlsplit(endpoint).hostname or ""
        return host == "localhost" or bool(ip_address(host))
    except ValueError:
        return False


def _indexed(settings: Settings, chain_id: int, node_id: int) -> tuple[Indexed | None, str]:
    try:
        with open_answers(settings) as answers:
            return _settled(answers, chain_id, node_id), ""
    except IndexerError as error:
        return None, str(error)


def _settled(answers: Answers, chain_id: int, node_id: int) -> Indexed | None:
    after, count, paid = 0, 0, 0
    as_of = answers.node(node_id, None)["as_of"]
    at = as_of["block"]
    if as_of["chain_id"] != chain_id:
        raise QuestionError(f"it is of chain {as_of['chain_id']}: name that of chain {chain_id} with --database.")
    for _ in range(_MAX_PAGES):
        page = answers.sessions(SessionsOf(node_id=node_id, status="settled"), Rows(after, _PAGE, at))
        count += len(page["sessions"])
        paid += sum(int(session["paid"]) for session in page["sessions"])
        if page["next"] is None:
            return Indexed(at, count, paid)
        after = page["next"]
    return None
