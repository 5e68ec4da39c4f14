"""Typed clients of the contracts (design section 3).

A view takes `at=` (the state after that block; None: the latest); a write gives a `Write`, which a `Sender` sends.
Hashes are 0x and lower-case digits, addresses lower case.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, Final, TypeVar

from web3 import Web3

from counterfoil.chain.connection import Chain
from counterfoil.chain.errors import ChainError, RevertedError
from counterfoil.routing.lottery import NO_CAP, Candidate, Terms

NOBODY: Final = "0x" + "0" * 40
ATTEST_GAS: Final = 5_000_000
LENS_GAS: Final = 2_000_000_000
LENS_LIMIT: Final = 1024
_PAGE: Final = 128

State = TypeVar("State")


class SessionStatus(IntEnum):
    """Status of a session, as SessionManager counts it; NONE is that of an id it does not know."""

    NONE = 0
    OPEN = 1
    CLOSING = 2
    SETTLED = 3


@dataclass(frozen=True, slots=True)
class Write:
    """A call that changes state, ready to be sent; `what` names it in messages."""

    what: str
    function: Any


@dataclass(frozen=True, slots=True)
class RegistryParameters:
    """NodeRegistry.parameters: stakes in base units, `unbonding_period` in seconds; an empty court is nobody."""

    stake_token: str
    min_stake: int
    stake_per_slot: int
    unbonding_period: int
    court: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """NodeRegistry.nodes: amounts in base units, `release_at` in seconds."""

    operator: str
    stake: int
    unbonding: int
    release_at: int
    holds: int
    max_concurrent: int
    capability_count: int
    endpoint: str


@dataclass(frozen=True, slots=True)
class ServiceState:
    """NodeRegistry.services: `price` in base units a call."""

    node_id: int
    category_id: str
    price: int
    active: bool
    metadata_uri: str


@dataclass(frozen=True, slots=True)
class ListingState:
    """NodeRegistry.listing_of: what opening and scoring read, without any text that its operator may choose."""

    node_id: int
    operator: str
    category_id: str
    price: int
    stake: int
    max_concurrent: int
    routable: bool


@dataclass(frozen=True, slots=True)
class SessionState:
    """SessionManager.sessions; `status` is a SessionStatus; times in seconds."""

    client: str
    operator: str
    signer: str
    service_id: int
    node_id: int
    price: int
    deposit: int
    expires_at: int
    closes_at: int
    status: int
    paid: int
    calls: int
    settled_at: int


@dataclass(frozen=True, slots=True)
class RatingState:
    """ReputationLedger.ratings of a node."""

    rating_sum: int
    rating_count: int
    unpaid_count: int
    paid_weight: int
    weighted_sum: int


@dataclass(frozen=True, slots=True)
class Choice:
    """How a service was chosen, as SessionManager.open takes it; `price_cap` None is none."""

    policy: int
    nonce: int
    attempt: int
    snapshot_block: int
    snapshot_hash: str
    price_cap: int | None
    decision: str

    def as_tuple(self) -> tuple[int, int, int, int, bytes, int, bytes]:
        """The struct in the contract's order."""
        cap = NO_CAP if self.price_cap is None else self.price_cap
        return (
            self.policy, self.nonce, self.attempt, self.snapshot_block, word(self.snapshot_hash), cap,
            word(self.decision),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opening:
    """The terms of a session, as SessionManager.open takes them: `signer` signs vouchers (NOBODY: the client)."""

    service_id: int
    deposit: int
    max_price: int
    duration: int
    choice: Choice
    signer: str = NOBODY

    def as_tuple(self) -> tuple[Any, ...]:
        """The arguments in the contract's order."""
        choice = self.choice.as_tuple()
        return (self.service_id, self.deposit, self.max_price, self.duration, address(self.signer), choice)


@dataclass(frozen=True, slots=True)
class Authorization:
    """What a client lets the manager take by EIP-3009, in base units, and when (seconds)."""

    amount: int
    valid_after: int
    valid_before: int


@dataclass(frozen=True, slots=True)
class ExperienceRecord:
    """What a client found (design section 3, ExperienceLedger); `judge_score` 255: no judge; `cost` in base units."""

    session_id: str
    tool: str
    need: str
    task: str
    worked: bool
    calls: int
    failures: int
    judge_score: int
    latency_ms: int
    cost: int
    message: str
    note: str

    def as_tuple(self) -> tuple[Any, ...]:
        """The struct in the contract's order."""
        _, *others = (getattr(self, field.name) for field in fields(self))
        return (word(self.session_id), *others)


@dataclass(frozen=True, slots=True)
class Weighed:
    """RoutingLens.weights: whether the guard was relaxed, the terms of the kept, the rule of the dropped."""

    relaxed: bool
    terms: dict[int, Terms]
    dropped: dict[int, str]


class _Client:
    NAME: str

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.contract = chain.contract(self.NAME)
        self.address: str = self.contract.address.lower()

    def _view(self, name: str, *arguments: object, at: int | None, gas: int | None = None) -> Any:  # noqa: ANN401
        return self.chain.call(self.contract.functions[name](*arguments), at, gas)

    def _write(self, name: str, *arguments: object) -> Write:
        return Write(f"{self.NAME}.{name}", self.contract.functions[name](*arguments))


class NodeRegistry(_Client):
    """Operators, stake, nodes, and services by category."""

    NAME = "NodeRegistry"

    def node_count(self, at: int | None = None) -> int:
        """How many nodes there are; ids count from 1."""
        return int(self._view("node_count", at=at))

    def service_count(self, at: int | None = None) -> int:
        """How many services there are; ids count from 1."""
        return int(self._view("service_count", at=at))

    def parameters(self, at: int | None = None) -> RegistryParameters:
        """What the registry was deployed with."""
        return _state(RegistryParameters, self._view("parameters", at=at))

    def node(self, node_id: int, at: int | None = None) -> NodeState:
        """One node; all empty for an id that does not exist."""
        return _state(NodeState, self._view("nodes", node_id, at=at))

    def service(self, service_id: int, at: int | None = None) -> ServiceState:
        """One service."""
        return _state(ServiceState, self._view("services", service_id, at=at))

    def listing(self, service_id: int, at: int | None = None) -> ListingState:
        """One service with what its node stands for."""
        return _state(ListingState, self._view("listing_of", service_id, at=at))

    def category_size(self, category_id: bytes, at: int | None = None) -> int:
        """How many services were ever listed in a category."""
        return int(self._view("category_size", category_id, at=at))

    def category_service(self, category_id: bytes, position: int, at: int | None = None) -> int:
        """The service at a position (from 0) of a category."""
        return int(self._view("category_service", category_id, position, at=at))

    def has_capability(self, node_id: int, capability: str, at: int | None = None) -> bool:
        """Whether a capability of a node is switched on."""
        return bool(self._view("has_capability", node_id, Web3.keccak(text=capability), at=at))

    def is_routable(self, service_id: int, at: int | None = None) -> bool:
        """Whether the service is active and its node holds the least stake."""
        return bool(self._view("is_routable", service_id, at=at))

    def register_node(self, endpoint: str, stake: int) -> Write:
        """Register a node with a stake, which the token must have been approved for."""
        return self._write("register_node", endpoint, stake)

    def set_endpoint(self, node_id: int, endpoint: str) -> Write:
        """Say where the node answers."""
        return self._write("set_endpoint", node_id, endpoint)

    def set_capability(self, node_id: int, capability: str, enabled: bool) -> Write:
        """Switch a capability on or off."""
        return self._write("set_capability", node_id, capability, enabled)

    def transfer_node(self, node_id: int, operator: str) -> Write:
        """Offer the node to another operator."""
        return self._write("transfer_node", node_id, address(operator))

    def accept_node(self, node_id: int) -> Write:
        """Take over a node that was offered."""
        return self._write("accept_node", node_id)

    def add_stake(self, node_id: int, amount: int) -> Write:
        """Add stake."""
        return self._write("add_stake", node_id, amount)

    def request_unstake(self, node_id: int, amount: int) -> Write:
        """Start to take stake out: it stops counting at once, and is paid after the unbonding period."""
        return self._write("request_unstake", node_id, amount)

    def withdraw_stake(self, node_id: int) -> Write:
        """Take out the stake whose unbonding period is over."""
        return self._write("withdraw_stake", node_id)

    def list_service(self, node_id: int, category: str, price: int, metadata_uri: str) -> Write:
        """Offer a service, one a category and node for ever."""
        return self._write("list_service", node_id, category, price, metadata_uri)

    def set_price(self, service_id: int, price: int) -> Write:
        """Change a price a call."""
        return self._write("set_price", service_id, price)

    def set_active(self, service_id: int, active: bool) -> Write:
        """Switch a service on or off."""
        return self._write("set_active", service_id, active)

    def set_metadata(self, service_id: int, metadata_uri: str) -> Write:
        """Say where the service describes itself."""
        return self._write("set_metadata", service_id, metadata_uri)


class SessionManager(_Client):
    """Sessions, their money, and what was chosen."""

    NAME = "SessionManager"

    def session(self, session_id: str, at: int | None = None) -> SessionState:
        """One session; `status` is NONE when there is none."""
        return _state(SessionState, self._view("sessions", word(session_id), at=at))

    def draws(self, client: str, at: int | None = None) -> int:
        """The number of a client's next draw."""
        return int(self._view("draws", address(client), at=at))

    def active_sessions(self, node_id: int, at: int | None = None) -> int:
        """A node's unsettled sessions."""
        return int(self._view("active_sessions", node_id, at=at))

    def credit_of(self, account: str, at: int | None = None) -> int:
        """What an account can withdraw, in base units."""
        return int(self._view("credit_of", address(account), at=at))

    def open(self, opening: Opening) -> Write:
        """Open a session as its client."""
        return self._write("open", *opening.as_tuple())

    def open_with_authorization(
        self, client: str, opening: Opening, authorization: Authorization, signature: bytes
    ) -> Write:
        """Open a session for a client that pays no gas; the signature is over `typed_data.authorization`."""
        taken = (authorization.amount, authorization.valid_after, authorization.valid_before)
        arguments = (address(client), *opening.as_tuple(), taken, signature)
        return self._write("open_with_authorization", *arguments)

    def top_up(self, session_id: str, amount: int) -> Write:
        """Add to an open session's deposit."""
        return self._write("top_up", word(session_id), amount)

    def settle(self, session_id: str, amount: int, calls: int, signature: bytes = b"") -> Write:
        """Settle by the last voucher; no voucher settles at zero."""
        return self._write("settle", word(session_id), amount, calls, signature)

    def request_close(self, session_id: str) -> Write:
        """Start the challenge period."""
        return self._write("request_close", word(session_id))

    def finish_close(self, session_id: str) -> Write:
        """End a session after its challenge period."""
        return self._write("finish_close", word(session_id))

    def expire(self, session_id: str) -> Write:
        """End a session that ran out."""
        return self._write("expire", word(session_id))

    def withdraw(self, to: str) -> Write:
        """Take out the sender's credit."""
        return self._write("withdraw", address(to))


class ReputationLedger(_Client):
    """One score a settled session."""

    NAME = "ReputationLedger"

    def ratings(self, node_id: int, at: int | None = None) -> RatingState:
        """A node's counted ratings."""
        return _state(RatingState, self._view("ratings", node_id, at=at))

    def score_of(self, session_id: str, at: int | None = None) -> int | None:
        """A session's score (0 to 100), None while it has none."""
        rated, score = self._view("score_of", word(session_id), at=at)
        return int(score) if rated else None

    def rate(self, session_id: str, score: int) -> Write:
        """Rate as the session's client."""
        return self._write("rate", word(session_id), score)

    def rate_by_signature(self, session_id: str, score: int, signature: bytes) -> Write:
        """Rate with the client's signature."""
        return self._write("rate_by_signature", word(session_id), score, signature)


class ExperienceLedger(_Client):
    """Signed experience records."""

    NAME = "ExperienceLedger"

    def attest(self, record: ExperienceRecord, signature: bytes) -> Write:
        """Put one record on chain."""
        return self._write("attest", record.as_tuple(), signature)

    def would_take(self, record: ExperienceRecord, signature: bytes) -> bool:
        """Whether `attest` would take a signature now, ERC-1271 included. RevertedError where another rule fails."""
        try:
            self.chain.call(self.contract.functions["attest"](record.as_tuple(), signature), gas=ATTEST_GAS)
        except RevertedError as error:
            if error.reason != "experience: bad signature":
                raise
            return False
        return True

    def attest_many(self, records: Sequence[ExperienceRecord], signatures: Sequence[bytes]) -> Write:
        """Put several records on chain."""
        return self._write("attest_many", [record.as_tuple() for record in records], list(signatures))


class RoutingLens(_Client):
    """The lottery on chain: views only."""

    NAME = "RoutingLens"
    _RULES: Final = {1: "average", 2: "cap"}

    def draw_seed(self, snapshot_hash: str, client: str, nonce: int, category_id: bytes) -> bytes:
        """The seed of a draw."""
        arguments = (word(snapshot_hash), address(client), nonce, category_id)
        return bytes(self._view("draw_seed", *arguments, at=None))

    def candidates(self, category_id: bytes, size: int, at: int | None = None) -> tuple[Candidate, ...]:
        """Every routable listing among the first `size` of a category, page by page, ascending by service_id."""
        found: list[Candidate] = []
        for start in range(0, size, _PAGE):
            page = self._view("candidates", category_id, start, _PAGE, at=at, gas=LENS_GAS)
            found += [Candidate(*entry) for entry in page]
        return tuple(found)

    def weights(self, category_id: bytes, price_cap: int | None = None, at: int | None = None) -> Weighed:
        """The terms of a category of at most 1,024 listings."""
        cap = NO_CAP if price_cap is None else price_cap
        relaxed, entries = self._view("weights", category_id, cap, at=at, gas=LENS_GAS)
        return Weighed(
            relaxed=bool(relaxed),
            terms={entry[0]: Terms(*entry[2:]) for entry in entries if entry[1] == 0},
            dropped={entry[0]: self._rule(entry[1]) for entry in entries if entry[1] != 0},
        )

    def order(
        self, category_id: bytes, price_cap: int | None, seed: bytes, length: int, at: int | None = None
    ) -> tuple[int, ...]:
        """The first `length` (at most 16) of a draw in a category of at most 1,024 listings."""
        cap = NO_CAP if price_cap is None else price_cap
        return tuple(self._view("order", category_id, cap, seed, length, at=at, gas=LENS_GAS))

    def _rule(self, code: int) -> str:
        return self._RULES.get(code, f"code {code}")


class Token:
    """An ERC-20 token; amounts in base units."""

    def __init__(self, chain: Chain, token: str) -> None:
        # The test token's ABI holds the ERC-20 functions; `mint` works with test tokens only.
        self.chain = chain
        self.contract = chain.contract_at("TestToken", token)
        self.address: str = self.contract.address.lower()

    def balance_of(self, account: str, at: int | None = None) -> int:
        """What an account holds."""
        return int(self.chain.call(self.contract.functions.balanceOf(address(account)), at))

    def allowance(self, owner: str, spender: str, at: int | None = None) -> int:
        """What `spender` may take from `owner`."""
        arguments = (address(owner), address(spender))
        return int(self.chain.call(self.contract.functions.allowance(*arguments), at))

    def domain(self) -> tuple[str, str]:
        """Name and version of its EIP-712 domain. Raises ChainError for a token that has none."""
        functions = self.contract.functions
        return str(self.chain.call(functions.name())), str(self.chain.call(functions.version()))

    def approve(self, spender: str, amount: int) -> Write:
        """Let `spender` take `amount`."""
        return Write("Token.approve", self.contract.functions.approve(address(spender), amount))

    def mint(self, receiver: str, amount: int) -> Write:
        """Make test tokens."""
        return Write("Token.mint", self.contract.functions.mint(address(receiver), amount))


def word(text: str) -> bytes:
    """The 32 bytes of 0x and 64 digits. Raises ChainError for anything else."""
    try:
        found = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        found = b""
    if len(found) != 32 or not text.startswith("0x"):
        raise ChainError(f"{text[:80]!r} is no 32-byte id: give 0x and 64 hexadecimal digits.")
    return found


def address(text: str) -> str:
    """The checksummed form of an address. Raises ChainError for what is no address."""
    try:
        return Web3.to_checksum_address(text)
    except (ValueError, TypeError) as error:
        raise ChainError(f"{text[:80]!r} is no address: give 0x and 40 hexadecimal digits.") from error


def _state(kind: type[State], answer: Sequence[Any]) -> State:
    return kind(*(_plain(part) for part in answer))


def _plain(part: Any) -> Any:  # noqa: ANN401
    if isinstance(part, bytes):
        return "0x" + part.hex()
    if isinstance(part, str) and Web3.is_checksum_address(part):
        return part.lower()
    return part
