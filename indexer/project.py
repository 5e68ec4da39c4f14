"""The fold: the events of a block and the rows before it give the rows after it. Pure: no I/O, no clock.

An event that does not fit the rows before it (a price for a service nobody listed) is rejected with a reason and
changes nothing; the rest of the block goes on.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from indexer import events as ev
from indexer import rows
from indexer.rows import Fact, Key, V, Versioned, changed, columns_of, getter_of, key_of

_UINT256 = 1 << 256


class State(Protocol):
    """The rows as they stand before a block."""

    def get(self, row_type: type[V], key: Key) -> V | None:
        """Give the current row of a key, None where there is none."""

    def session_count(self) -> int:
        """Give how many sessions were ever opened."""


class PlacedEvent(NamedTuple):
    """An event and its log's index within the block."""

    log_index: int
    event: ev.Event


class PlacedFact(NamedTuple):
    """A fact and the index of the log that states it."""

    log_index: int
    fact: Fact


class Rejection(NamedTuple):
    """A log that changed nothing, and why."""

    log_index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What a block changes: at most one version per key, facts and rejections in order of their logs."""

    versions: tuple[Versioned, ...] = ()
    facts: tuple[PlacedFact, ...] = ()
    rejections: tuple[Rejection, ...] = ()


NO_CHANGES = Changes()


class UnfitError(ValueError):
    """An event contradicts the rows before it; the message is the reason for the rejection."""


class _Draft:
    """The rows of one block while it is folded."""

    def __init__(self, block: int, state: State) -> None:
        self.block = block
        self._state = state
        self._changed: dict[tuple[type[Versioned], Key], Versioned] = {}
        self._opened = 0
        self.log_index = 0
        self.facts: list[PlacedFact] = []

    def find(self, row_type: type[V], *key: int | str) -> V | None:
        row = self._changed.get((row_type, key))
        return row if isinstance(row, row_type) else self._state.get(row_type, key)

    def need(self, row_type: type[V], *key: int | str) -> V:
        row = self.find(row_type, *key)
        if row is None:
            raise UnfitError(f"no {row_type.TABLE} {'/'.join(map(str, key))} was there before this event")
        return row

    def refuse_known(self, row_type: type[V], *key: int | str) -> None:
        if self.find(row_type, *key) is not None:
            raise UnfitError(f"the {row_type.TABLE} {'/'.join(map(str, key))} was there already")

    def put(self, row: Versioned) -> None:
        self._changed[type(row), key_of(row)] = row

    def state(self, fact: Fact) -> None:
        self.facts.append(PlacedFact(self.log_index, fact))

    def next_number(self) -> int:
        self._opened += 1
        return self._state.session_count() + self._opened

    def versions(self) -> tuple[Versioned, ...]:
        """Give the rows that differ from those before the block, in a fixed order."""
        changed = [
            (row_type.TABLE, key, row)
            for (row_type, key), row in self._changed.items()
            if row != self._state.get(row_type, key)
        ]
        return tuple(row for _, _, row in sorted(changed))  # no two have the same table and key


def fold_block(block: int, placed: Iterable[PlacedEvent], state: State) -> Changes:
    """Fold a block's events, in order of their logs, over the rows before it."""
    draft = _Draft(block, state)
    rejections = []
    for item in placed:
        draft.log_index = item.log_index
        try:
            _HANDLERS[type(item.event)](draft, item.event)
        except UnfitError as error:
            rejections.append(Rejection(item.log_index, f"{type(item.event).__name__}: {error}"))
    return Changes(draft.versions(), tuple(draft.facts), tuple(rejections))


_RATING = getter_of(columns_of(rows.Rating))
_EXPERIENCE = getter_of(columns_of(rows.Experience))
_COPIED: dict[type[ev.Event], tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]] = {
    event: (names := tuple(argument.name for argument in ev.arguments(event)), getter_of(names))
    for event in (ev.ServiceListed, ev.SessionOpened, ev.DisputeOpened)
}


def _arguments(event: ev.Event) -> dict[str, Any]:
    names, values = _COPIED[type(event)]
    return dict(zip(names, values(event), strict=True))


# --- NodeRegistry


def _deployed(draft: _Draft, event: ev.Event) -> None:
    contract = ev.DEPLOYED[type(event)]
    for argument in ev.arguments(type(event)):
        draft.state(rows.Parameter(contract, argument.name, str(getattr(event, argument.name))))


def _node_registered(draft: _Draft, event: ev.NodeRegistered) -> None:
    draft.refuse_known(rows.Node, event.node_id)
    draft.put(rows.Node(event.node_id, event.operator, event.endpoint))
    draft.put(rows.NodeLoad(event.node_id, 0))
    draft.put(rows.NodeReputation(event.node_id, 0, 0, 0, 0, 0))


def _endpoint_changed(draft: _Draft, event: ev.EndpointChanged) -> None:
    draft.put(changed(draft.need(rows.Node, event.node_id), endpoint=event.endpoint))


def _node_transferred(draft: _Draft, event: ev.NodeTransferred) -> None:
    draft.put(changed(draft.need(rows.Node, event.node_id), operator=event.operator))


def _capability_changed(draft: _Draft, event: ev.CapabilityChanged) -> None:
    draft.need(rows.Node, event.node_id)
    draft.put(rows.Capability(event.node_id, event.capability, event.enabled))


def _stake_changed(draft: _Draft, event: ev.StakeChanged) -> None:
    draft.need(rows.Node, event.node_id)
    draft.put(rows.NodeStake(event.node_id, event.stake, event.unbonding, event.release_at))


def _stake_slashed(draft: _Draft, event: ev.StakeSlashed) -> None:
    draft.need(rows.Node, event.node_id)
    draft.state(rows.Slash(event.node_id, event.from_stake, event.from_unbonding, event.recipient))


def _service_listed(draft: _Draft, event: ev.ServiceListed) -> None:
    draft.need(rows.Node, event.node_id)
    draft.refuse_known(rows.Service, event.service_id)
    draft.put(rows.Service(**_arguments(event), active=True))


def _price_changed(draft: _Draft, event: ev.PriceChanged) -> None:
    draft.put(changed(draft.need(rows.Service, event.service_id), price=event.price))


def _service_status_changed(draft: _Draft, event: ev.ServiceStatusChanged) -> None:
    draft.put(changed(draft.need(rows.Service, event.service_id), active=event.active))


def _metadata_changed(draft: _Draft, event: ev.MetadataChanged) -> None:
    draft.put(changed(draft.need(rows.Service, event.service_id), metadata_uri=event.metadata_uri))


# --- SessionManager


def _session_opened(draft: _Draft, event: ev.SessionOpened) -> None:
    draft.refuse_known(rows.Session, event.session_id)
    load = draft.need(rows.NodeLoad, event.node_id)
    draft.put(rows.NodeLoad(event.node_id, load.active_sessions + 1))
    draft.put(
        rows.Session(
            **_arguments(event), number=draft.next_number(), opened_block=draft.block, status=rows.OPEN,
            closes_at=0, paid=0, refunded=0, calls=0,
        )
    )  # fmt: skip


def _unsettled(draft: _Draft, session_id: str) -> rows.Session:
    session = draft.need(rows.Session, session_id)
    if session.status == rows.SETTLED:
        raise UnfitError(f"the session {session_id} was settled before")
    return session


def _session_topped_up(draft: _Draft, event: ev.SessionToppedUp) -> None:
    draft.put(changed(_unsettled(draft, event.session_id), deposit=event.deposit))


def _close_requested(draft: _Draft, event: ev.CloseRequested) -> None:
    session = _unsettled(draft, event.session_id)
    draft.put(changed(session, status=rows.CLOSING, closes_at=event.closes_at))


def _session_settled(draft: _Draft, event: ev.SessionSettled) -> None:
    session = _unsettled(draft, event.session_id)
    if session.node_id != event.node_id:
        raise UnfitError(f"the session {event.session_id} is of node {session.node_id}, not {event.node_id}")
    load = draft.need(rows.NodeLoad, event.node_id)
    draft.put(rows.NodeLoad(event.node_id, load.active_sessions - 1))
    draft.put(changed(session, status=rows.SETTLED, paid=event.paid, refunded=event.refunded, calls=event.calls))


def _change_credit(
    draft: _Draft, kind: type[rows.Credit] | type[rows.CourtCredit], account: str, difference: int
) -> None:
    credit = draft.find(kind, account)
    amount = (credit.amount if credit else 0) + difference
    if not 0 <= amount < _UINT256:
        raise UnfitError(f"the credit of {account} would leave the range of a uint256")
    draft.put(kind(account, amount))


def _credited(draft: _Draft, event: ev.Credited) -> None:
    _change_credit(draft, rows.Credit, event.account, event.amount)


def _credit_left(draft: _Draft, event: ev.CreditSpent | ev.CreditWithdrawn) -> None:
    _change_credit(draft, rows.Credit, event.account, -event.amount)


# --- the ledgers


def _session_rated(draft: _Draft, event: ev.SessionRated) -> None:
    reputation = draft.need(rows.NodeReputation, event.node_id)
    draft.state(rows.Rating(*_RATING(event)))
    if event.counted:
        draft.put(count_rating(reputation, event.score, event.paid))


def count_rating(before: rows.NodeReputation, score: int, paid: int) -> rows.NodeReputation:
    """Add a counted rating; past WEIGHT_LIMIT the paid weights stay as they are (ReputationLedger's rule)."""
    weighs = before.paid_weight + paid < rows.WEIGHT_LIMIT
    return rows.NodeReputation(
        node_id=before.node_id,
        rating_sum=before.rating_sum + score,
        rating_count=before.rating_count + 1,
        unpaid_count=before.unpaid_count + (paid == 0),
        paid_weight=before.paid_weight + (paid if weighs else 0),
        weighted_sum=before.weighted_sum + (score * paid if weighs else 0),
    )


def _experience_attested(draft: _Draft, event: ev.ExperienceAttested) -> None:
    draft.state(rows.Experience(*_EXPERIENCE(event)))


# --- DisputeCourt


def _arbiter_changed(draft: _Draft, event: ev.ArbiterChanged) -> None:
    draft.state(rows.Arbiter(event.arbiter))


def _dispute_opened(draft: _Draft, event: ev.DisputeOpened) -> None:
    draft.need(rows.Session, event.session_id)
    draft.refuse_known(rows.Dispute, event.dispute_id)
    draft.put(rows.Dispute(**_arguments(event), status=rows.DISPUTE_OPEN, award=0))


def _dispute_resolved(draft: _Draft, event: ev.DisputeResolved) -> None:
    dispute = draft.need(rows.Dispute, event.dispute_id)
    if dispute.status != rows.DISPUTE_OPEN:
        raise UnfitError(f"the dispute {event.dispute_id} was ended before")
    draft.put(changed(dispute, status=event.status, award=event.award))


def _court_credited(draft: _Draft, event: ev.CourtCredited) -> None:
    _change_credit(draft, rows.CourtCredit, event.account, event.amount)


def _court_withdrawn(draft: _Draft, event: ev.CourtWithdrawn) -> None:
    _change_credit(draft, rows.CourtCredit, event.account, -event.amount)


# Each handler takes the event of its own key.
_HANDLERS: Mapping[type[ev.Event], Callable[[_Draft, Any], None]] = {
    ev.RegistryDeployed: _deployed,
    ev.ManagerDeployed: _deployed,
    ev.ReputationDeployed: _deployed,
    ev.ExperienceDeployed: _deployed,
    ev.CourtDeployed: _deployed,
    ev.NodeRegistered: _node_registered,
    ev.EndpointChanged: _endpoint_changed,
    ev.CapabilityChanged: _capability_changed,
    ev.NodeTransferred: _node_transferred,
    ev.StakeChanged: _stake_changed,
    ev.StakeSlashed: _stake_slashed,
    ev.ServiceListed: _service_listed,
    ev.PriceChanged: _price_changed,
    ev.ServiceStatusChanged: _service_status_changed,
    ev.MetadataChanged: _metadata_changed,
    ev.SessionOpened: _session_opened,
    ev.SessionToppedUp: _session_topped_up,
    ev.CloseRequested: _close_requested,
    ev.SessionSettled: _session_settled,
    ev.Credited: _credited,
    ev.CreditSpent: _credit_left,
    ev.CreditWithdrawn: _credit_left,
    ev.SessionRated: _session_rated,
    ev.ExperienceAttested: _experience_attested,
    ev.ArbiterChanged: _arbiter_changed,
    ev.DisputeOpened: _dispute_opened,
    ev.DisputeResolved: _dispute_resolved,
    ev.CourtCredited: _court_credited,
    ev.CourtWithdrawn: _court_withdrawn,
}


# --- what a block will read, so that a store can read it at once

_READS: Mapping[type[ev.Event], tuple[tuple[type[Versioned], tuple[str, ...]], ...]] = {
    ev.NodeRegistered: tuple((t, ("node_id",)) for t in (rows.Node, rows.NodeLoad, rows.NodeReputation)),
    ev.EndpointChanged: ((rows.Node, ("node_id",)),),
    ev.NodeTransferred: ((rows.Node, ("node_id",)),),
    ev.CapabilityChanged: ((rows.Node, ("node_id",)), (rows.Capability, ("node_id", "capability"))),
    ev.StakeChanged: ((rows.Node, ("node_id",)), (rows.NodeStake, ("node_id",))),
    ev.StakeSlashed: ((rows.Node, ("node_id",)),),
    ev.ServiceListed: ((rows.Node, ("node_id",)), (rows.Service, ("service_id",))),
    ev.PriceChanged: ((rows.Service, ("service_id",)),),
    ev.ServiceStatusChanged: ((rows.Service, ("service_id",)),),
    ev.MetadataChanged: ((rows.Service, ("service_id",)),),
    ev.SessionOpened: ((rows.Session, ("session_id",)), (rows.NodeLoad, ("node_id",))),
    ev.SessionToppedUp: ((rows.Session, ("session_id",)),),
    ev.CloseRequested: ((rows.Session, ("session_id",)),),
    ev.SessionSettled: ((rows.Session, ("session_id",)), (rows.NodeLoad, ("node_id",))),
    ev.Credited: ((rows.Credit, ("account",)),),
    ev.CreditSpent: ((rows.Credit, ("account",)),),
    ev.CreditWithdrawn: ((rows.Credit, ("account",)),),
    ev.SessionRated: ((rows.NodeReputation, ("node_id",)),),
    ev.DisputeOpened: ((rows.Session, ("session_id",)), (rows.Dispute, ("dispute_id",))),
    ev.DisputeResolved: ((rows.Dispute, ("dispute_id",)),),
    ev.CourtCredited: ((rows.CourtCredit, ("account",)),),
    ev.CourtWithdrawn: ((rows.CourtCredit, ("account",)),),
}


_TOUCHED = {event: [(row_type, getter_of(names)) for row_type, names in reads] for event, reads in _READS.items()}


def touched(events: Iterable[ev.Event]) -> dict[type[Versioned], set[Key]]:
    """Name every row that folding these events reads."""
    keys: dict[type[Versioned], set[Key]] = defaultdict(set)
    for event in events:
        for row_type, key in _TOUCHED.get(type(event), ()):
            keys[row_type].add(key(event))
    return keys
