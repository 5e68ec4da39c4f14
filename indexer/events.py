"""Every event of the contracts, declared once: a class per event, a field per argument, in the ABI's order.

The annotation of a field holds its ABI type, whether it is indexed, and (for ids, blocks and times, which a
contract counts itself) how many bits it can have. Signature, topic0 and decoder follow from the class.
"""

from dataclasses import dataclass
from typing import Annotated, get_type_hints

from indexer.keccak import keccak
from indexer.value import value


@dataclass(frozen=True, slots=True)
class Abi:
    """The ABI type of an argument; `bits` bounds an integer below its type's own bound."""

    type: str
    indexed: bool = False
    bits: int = 256


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an event as the ABI lists it."""

    name: str
    abi: Abi


_COUNTED = 63  # ids, block numbers, times: what the contracts count themselves stays far below

Uint = Annotated[int, Abi("uint256")]
Counted = Annotated[int, Abi("uint256", bits=_COUNTED)]
IndexedCounted = Annotated[int, Abi("uint256", indexed=True, bits=_COUNTED)]
Uint8 = Annotated[int, Abi("uint8", bits=8)]
Uint32 = Annotated[int, Abi("uint32", bits=32)]
Flag = Annotated[bool, Abi("bool")]
Address = Annotated[str, Abi("address")]
IndexedAddress = Annotated[str, Abi("address", indexed=True)]
Bytes32 = Annotated[str, Abi("bytes32")]
IndexedBytes32 = Annotated[str, Abi("bytes32", indexed=True)]
Text = Annotated[str, Abi("string")]


class Event:
    """Base of all events."""

    __slots__ = ()


@value
class RegistryDeployed(Event):
    """NodeRegistry's constructor arguments."""

    stake_token: Address
    min_stake: Uint
    stake_per_slot: Uint
    unbonding_period: Uint
    court: Address


@value
class NodeRegistered(Event):
    """An operator registered a node."""

    node_id: IndexedCounted
    operator: IndexedAddress
    endpoint: Text


@value
class EndpointChanged(Event):
    """A node answers elsewhere."""

    node_id: IndexedCounted
    endpoint: Text


@value
class CapabilityChanged(Event):
    """A capability was switched on or off."""

    node_id: IndexedCounted
    capability: Text
    enabled: Flag


@value
class NodeTransferred(Event):
    """A node has a new operator."""

    node_id: IndexedCounted
    operator: IndexedAddress


@value
class StakeChanged(Event):
    """A node's stake after a change of it."""

    node_id: IndexedCounted
    stake: Uint
    unbonding: Uint
    release_at: Counted


@value
class StakeSlashed(Event):
    """The court took stake."""

    node_id: IndexedCounted
    from_stake: Uint
    from_unbonding: Uint
    recipient: Address


@value
class ServiceListed(Event):
    """A node offers a service in a category."""

    service_id: IndexedCounted
    node_id: IndexedCounted
    category_id: IndexedBytes32
    category: Text
    price: Uint
    metadata_uri: Text


@value
class PriceChanged(Event):
    """A service has a new price per call."""

    service_id: IndexedCounted
    price: Uint


@value
class ServiceStatusChanged(Event):
    """A service was switched on or off."""

    service_id: IndexedCounted
    active: Flag


@value
class MetadataChanged(Event):
    """A service describes itself elsewhere."""

    service_id: IndexedCounted
    metadata_uri: Text


@value
class ManagerDeployed(Event):
    """SessionManager's constructor arguments."""

    payment_token: Address
    registry: Address
    challenge_period: Uint
    max_duration: Uint
    max_snapshot_age: Uint


@value
class SessionOpened(Event):
    """A client opened a session; `signer` is the effective one."""

    session_id: IndexedBytes32
    client: IndexedAddress
    service_id: IndexedCounted
    node_id: Counted
    operator: Address
    signer: Address
    price: Uint
    max_price: Uint
    deposit: Uint
    expires_at: Counted
    policy: Uint8
    nonce: Uint
    attempt: Uint
    snapshot_block: Counted
    snapshot_hash: Bytes32
    draw_seed: Bytes32
    price_cap: Uint
    decision: Bytes32


@value
class SessionToppedUp(Event):
    """The new total deposit of a session."""

    session_id: IndexedBytes32
    deposit: Uint


@value
class CloseRequested(Event):
    """A client asked to close; from `closes_at` on anyone may finish."""

    session_id: IndexedBytes32
    closes_at: Counted


@value
class SessionSettled(Event):
    """A session ended."""

    session_id: IndexedBytes32
    node_id: IndexedCounted
    client: IndexedAddress
    paid: Uint
    refunded: Uint
    calls: Uint


@value
class Credited(Event):
    """An account is owed more."""

    account: IndexedAddress
    amount: Uint


@value
class CreditSpent(Event):
    """An account's credit went into a session."""

    account: IndexedAddress
    session_id: IndexedBytes32
    amount: Uint


@value
class CreditWithdrawn(Event):
    """An account's credit was paid out."""

    account: IndexedAddress
    to: Address
    amount: Uint


@value
class ReputationDeployed(Event):
    """ReputationLedger's constructor argument."""

    session_manager: Address


@value
class SessionRated(Event):
    """A client rated a settled session."""

    session_id: IndexedBytes32
    node_id: IndexedCounted
    client: IndexedAddress
    service_id: Counted
    score: Uint8
    paid: Uint
    counted: Flag


@value
class ExperienceDeployed(Event):
    """ExperienceLedger's constructor argument."""

    session_manager: Address


@value
class ExperienceAttested(Event):
    """A signed experience record was accepted."""

    session_id: IndexedBytes32
    service_id: IndexedCounted
    need_id: IndexedBytes32
    tool: Text
    need: Text
    task: Text
    worked: Flag
    calls: Uint32
    failures: Uint32
    judge_score: Uint8
    latency_ms: Uint32
    cost: Uint
    message: Text
    note: Text


@value
class CourtDeployed(Event):
    """DisputeCourt's constructor arguments, but the first arbiter."""

    registry: Address
    session_manager: Address
    bond: Uint
    dispute_window: Uint
    resolve_window: Uint


@value
class ArbiterChanged(Event):
    """Who decides disputes from now on."""

    arbiter: IndexedAddress


@value
class DisputeOpened(Event):
    """A client disputes a settled session; the node's stake is held."""

    dispute_id: IndexedCounted
    session_id: IndexedBytes32
    node_id: IndexedCounted
    client: Address
    claim: Uint
    bond: Uint
    evidence: Text


@value
class DisputeResolved(Event):
    """A dispute ended: `status` 2 upheld, 3 refused, 4 dropped; `award` is what was slashed."""

    dispute_id: IndexedCounted
    session_id: IndexedBytes32
    node_id: IndexedCounted
    status: Uint8
    award: Uint


@value
class CourtCredited(Event):
    """The court owes an account a bond or an award, in the stake token."""

    account: IndexedAddress
    amount: Uint


@value
class CourtWithdrawn(Event):
    """The court paid what it owed an account."""

    account: IndexedAddress
    to: Address
    amount: Uint


EVENTS: dict[str, tuple[type[Event], ...]] = {
    "NodeRegistry": (
        RegistryDeployed, NodeRegistered, EndpointChanged, CapabilityChanged, NodeTransferred, StakeChanged,
        StakeSlashed, ServiceListed, PriceChanged, ServiceStatusChanged, MetadataChanged,
    ),
    "SessionManager": (
        ManagerDeployed, SessionOpened, SessionToppedUp, CloseRequested, SessionSettled, Credited,
        CreditSpent, CreditWithdrawn,
    ),
    "ReputationLedger": (ReputationDeployed, SessionRated),
    "ExperienceLedger": (ExperienceDeployed, ExperienceAttested),
    "DisputeCourt": (
        CourtDeployed, ArbiterChanged, DisputeOpened, DisputeResolved, CourtCredited, CourtWithdrawn,
    ),
}  # fmt: skip
"""The contracts that are indexed, and the events of each."""

CONTRACTS = tuple(EVENTS)
OPTIONAL = frozenset({"DisputeCourt"})
"""A deployment without a court is one where nobody can slash."""

DEPLOYED: dict[type[Event], str] = {events[0]: contract for contract, events in EVENTS.items()}
"""Constructor events, and the contract whose parameters each one carries."""


def _arguments(event: type[Event]) -> tuple[Argument, ...]:
    hints = get_type_hints(event, include_extras=True)
    return tuple(Argument(name, hint.__metadata__[0]) for name, hint in hints.items())


_ARGUMENTS = {event: _arguments(event) for events in EVENTS.values() for event in events}


def arguments(event: type[Event]) -> tuple[Argument, ...]:
    """List an event's arguments in the order of its signature."""
    return _ARGUMENTS[event]


def signature(event: type[Event]) -> str:
    """Give the canonical signature, for example `PriceChanged(uint256,uint256)`."""
    return f"{event.__name__}({','.join(argument.abi.type for argument in arguments(event))})"


def topic0(event: type[Event]) -> str:
    """Give the first topic of an event's logs: keccak256 of its signature, lower-case hex."""
    return "0x" + keccak(signature(event).encode()).hex()
