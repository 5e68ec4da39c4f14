"""The pure fold, event by event, with the values that come out."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer import events as ev
from indexer import rows
from indexer.project import PlacedEvent, PlacedFact, count_rating, fold_block, touched
from tests.indexer.model import (
    CLIENT,
    COURT,
    OPERATOR,
    MemoryState,
    attested,
    disputed,
    listed,
    opened,
    rated,
    registered,
    resolved,
    row_dict,
    session_id,
    settled,
)

OTHER = "0x" + "0e" * 20


class Folding:
    """Folds blocks one after the other over a dictionary."""

    def __init__(self):
        self.state = MemoryState()
        self.block = 0

    def __call__(self, *events):
        self.block += 1
        changes = fold_block(self.block, [PlacedEvent(i, event) for i, event in enumerate(events)], self.state)
        self.state.apply(changes)
        return changes


@pytest.fixture
def fold():
    return Folding()


@pytest.fixture
def market(fold):
    """One node with one service."""
    fold(*registered(1), listed(1, 1))
    return fold


def reasons(changes):
    return [item.reason for item in changes.rejections]


def test_fold__of_a_constructor__states_each_parameter(fold):
    changes = fold(ev.RegistryDeployed(OPERATOR, 2**255, 500, 10, COURT))
    assert changes.facts == tuple(
        PlacedFact(0, rows.Parameter("NodeRegistry", name, value))
        for name, value in [
            ("stake_token", OPERATOR),
            ("min_stake", str(2**255)),
            ("stake_per_slot", "500"),
            ("unbonding_period", "10"),
            ("court", COURT),
        ]
    )
    assert changes.versions == ()


def test_fold__of_a_registration__makes_node_load_reputation_and_stake(fold):
    changes = fold(*registered(7, stake=2**127))
    assert set(changes.versions) == {
        rows.Node(7, OPERATOR, "http://node-7"),
        rows.NodeStake(7, 2**127, 0, 0),
        rows.NodeLoad(7, 0),
        rows.NodeReputation(7, 0, 0, 0, 0, 0),
    }


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (ev.EndpointChanged(1, "http://b"), rows.Node(1, OPERATOR, "http://b")),
        (ev.NodeTransferred(1, OTHER), rows.Node(1, OTHER, "http://node-1")),
        (ev.CapabilityChanged(1, "routing.v1", enabled=True), rows.Capability(1, "routing.v1", enabled=True)),
        (ev.StakeChanged(1, 1, 2, 3), rows.NodeStake(1, 1, 2, 3)),
    ],
)
def test_fold__of_a_nodes_change__gives_its_new_row(market, event, expected):
    assert market(event).versions == (expected,)


@pytest.mark.parametrize(
    ("event", "changed"),
    [
        (ev.PriceChanged(1, 2**128 - 1), {"price": 2**128 - 1}),
        (ev.ServiceStatusChanged(1, active=False), {"active": False}),
        (ev.MetadataChanged(1, "ipfs://new"), {"metadata_uri": "ipfs://new"}),
    ],
)
def test_fold__of_a_services_change__changes_one_field(market, event, changed):
    before = row_dict(market.state.get(rows.Service, (1,)))
    (after,) = market(event).versions
    assert row_dict(after) == before | changed


def test_fold__of_a_slash__states_it(market):
    changes = market(ev.StakeSlashed(1, 30, 4, COURT))
    assert changes.facts == (PlacedFact(0, rows.Slash(1, 30, 4, COURT)),)


def test_fold__of_an_opening__numbers_it_and_raises_the_load(market):
    changes = market(opened(11), opened(12))
    load, first, second = sorted(changes.versions, key=lambda row: (row.TABLE, getattr(row, "number", 0)))
    assert load == rows.NodeLoad(1, 2)
    assert (first.session_id, first.number, first.opened_block) == (session_id(11), 1, 2)
    assert (second.session_id, second.number, second.status) == (session_id(12), 2, rows.OPEN)
    assert (first.max_price, first.price_cap, first.closes_at, first.paid) == (2**256 - 1, 2**256 - 1, 0, 0)
    (third,) = [row for row in market(opened(13)).versions if isinstance(row, rows.Session)]
    assert third.number == 3


def test_fold__of_a_sessions_life__follows_it(market):
    market(opened(1))
    (topped,) = market(ev.SessionToppedUp(session_id(1), 250)).versions
    assert (topped.deposit, topped.status) == (250, rows.OPEN)
    (closing,) = market(ev.CloseRequested(session_id(1), 777)).versions
    assert (closing.status, closing.closes_at, closing.deposit) == (rows.CLOSING, 777, 250)
    load, ended = market(settled(1, paid=40, refunded=210, calls=4)).versions
    assert load == rows.NodeLoad(1, 0)
    assert (ended.status, ended.paid, ended.refunded, ended.calls) == (rows.SETTLED, 40, 210, 4)


def test_fold__of_opening_and_settling_in_one_block__leaves_the_load_unchanged(market):
    versions = market(opened(1), settled(1)).versions
    assert [type(row) for row in versions] == [rows.Session]


def test_fold__of_a_second_settlement__is_rejected_and_lowers_the_load_once(market):
    market(opened(1), opened(2))
    market(settled(1))
    changes = market(settled(1))
    assert reasons(changes) == [f"SessionSettled: the session {session_id(1)} was settled before"]
    assert changes.versions == ()
    assert market.state.get(rows.NodeLoad, (1,)) == rows.NodeLoad(1, 1)


def test_fold__of_a_settlement_for_another_node__is_rejected(market):
    market(*registered(2))
    market(opened(1))
    assert "is of node 1, not 2" in reasons(market(settled(1, node_id=2)))[0]


def test_fold__of_credits__adds_and_takes(market):
    assert market(ev.Credited(CLIENT, 2**128)).versions == (rows.Credit(CLIENT, 2**128),)
    assert market(ev.CreditSpent(CLIENT, session_id(1), 8)).versions == (rows.Credit(CLIENT, 2**128 - 8),)
    assert market(ev.CreditWithdrawn(CLIENT, OTHER, 2**128 - 8)).versions == (rows.Credit(CLIENT, 0),)
    assert "range of a uint256" in reasons(market(ev.CreditWithdrawn(CLIENT, OTHER, 1)))[0]
    assert "range of a uint256" in reasons(market(ev.Credited(CLIENT, 2**256 - 1), ev.Credited(CLIENT, 1)))[0]
    assert market.state.get(rows.Credit, (CLIENT,)) == rows.Credit(CLIENT, 2**256 - 1)


def test_fold__of_a_dispute__opens_and_ends_it_once(market):
    market(opened(1), settled(1))
    dispute = rows.Dispute(1, session_id(1), 1, CLIENT, 70, 5, "ipfs://e", 1, 0)
    assert market(disputed(1)).versions == (dispute,)
    assert "was there already" in reasons(market(disputed(1)))[0]
    assert market(resolved(1)).versions == (replace(dispute, status=2, award=60),)
    assert "was ended before" in reasons(market(resolved(1, status=3)))[0]


def test_fold__of_the_courts_credits__keeps_them_apart_from_the_managers(market):
    market(ev.Credited(CLIENT, 7))
    assert market(ev.CourtCredited(CLIENT, 65)).versions == (rows.CourtCredit(CLIENT, 65),)
    assert market(ev.CourtWithdrawn(CLIENT, OTHER, 65)).versions == (rows.CourtCredit(CLIENT, 0),)
    assert "range of a uint256" in reasons(market(ev.CourtWithdrawn(CLIENT, OTHER, 1)))[0]
    assert market.state.get(rows.Credit, (CLIENT,)) == rows.Credit(CLIENT, 7)


def test_fold__of_another_arbiter__states_it(market):
    assert [placed.fact for placed in market(ev.ArbiterChanged(OTHER)).facts] == [rows.Arbiter(OTHER)]


def test_fold__of_ratings__counts_those_that_count(market):
    paid = market(rated(1, score=80, paid=40))
    assert paid.versions == (rows.NodeReputation(1, 80, 1, 0, 40, 3200),)
    assert paid.facts[0].fact == rows.Rating(session_id(1), 1, CLIENT, 1, 80, 40, counted=True)
    assert market(rated(2, score=10, paid=0)).versions == (rows.NodeReputation(1, 90, 2, 1, 40, 3200),)
    uncounted = market(rated(3, score=10, paid=0, counted=False))
    assert uncounted.versions == ()
    assert uncounted.facts[0].fact.counted is False


def test_count_rating__at_the_weights_limit__keeps_the_weights():
    before = rows.NodeReputation(1, 0, 0, 0, 2**121 - 10, 5)
    assert count_rating(before, 50, 9) == rows.NodeReputation(1, 50, 1, 0, 2**121 - 1, 455)
    assert count_rating(before, 50, 10) == rows.NodeReputation(1, 50, 1, 0, 2**121 - 10, 5)


def test_fold__of_an_experience_record__states_every_field(market):
    (placed,) = market(attested(4)).facts
    expected = {name: value for name, value in row_dict(attested(4)).items() if name != "need_id"}
    assert row_dict(placed.fact) == expected


@pytest.mark.parametrize(
    "event",
    [
        ev.EndpointChanged(9, ""),
        ev.NodeTransferred(9, OTHER),
        ev.CapabilityChanged(9, "a", enabled=True),
        ev.StakeChanged(9, 1, 1, 1),
        ev.StakeSlashed(9, 1, 1, COURT),
        listed(9, 9),
        ev.PriceChanged(9, 1),
        ev.ServiceStatusChanged(9, active=True),
        ev.MetadataChanged(9, ""),
        opened(9, node_id=9),
        ev.SessionToppedUp(session_id(9), 1),
        ev.CloseRequested(session_id(9), 1),
        settled(9),
        rated(9, node_id=9),
        disputed(9),
        resolved(9),
    ],
)
def test_fold__of_an_event_about_nothing_known__is_rejected_and_the_block_goes_on(market, event):
    changes = market(event, ev.PriceChanged(1, 99))
    assert len(changes.rejections) == 1
    assert changes.rejections[0].log_index == 0
    assert changes.rejections[0].reason.startswith(type(event).__name__)
    assert [row.price for row in changes.versions] == [99]
    assert changes.facts == ()


@pytest.mark.parametrize("event", [registered(1)[0], listed(1, 1), opened(1)])
def test_fold__of_the_same_creation_twice__is_rejected(market, event):
    market(opened(1))
    changes = market(event)
    assert "was there already" in reasons(changes)[0]
    assert changes.versions == ()


def test_fold__of_several_changes_in_a_block__gives_one_version_per_key(market):
    versions = market(ev.PriceChanged(1, 20), ev.PriceChanged(1, 30), ev.EndpointChanged(1, "x")).versions
    assert [(row.TABLE, rows.key_of(row)) for row in versions] == [("node", (1,)), ("service", (1,))]
    assert versions[1].price == 30


def test_fold__of_a_change_and_its_undoing__gives_no_version(market):
    assert market(ev.PriceChanged(1, 20), ev.PriceChanged(1, 10)).versions == ()


class Recording(MemoryState):
    """Notes what the fold reads."""

    def __init__(self, state):
        super().__init__()
        self.rows, self.opened, self.read = state.rows, state.opened, set()

    def get(self, row_type, key):
        self.read.add((row_type, key))
        return super().get(row_type, key)


SAMPLES = [
    *registered(1), listed(1, 1), ev.EndpointChanged(1, "a"), ev.NodeTransferred(1, OTHER),
    ev.CapabilityChanged(1, "a", enabled=True), ev.StakeSlashed(1, 1, 1, COURT), ev.PriceChanged(1, 5),
    ev.ServiceStatusChanged(1, active=False), ev.MetadataChanged(1, "m"), opened(1), opened(2),
    ev.SessionToppedUp(session_id(1), 3), ev.CloseRequested(session_id(1), 4), settled(1),
    ev.Credited(CLIENT, 9), ev.CreditSpent(CLIENT, session_id(1), 2), ev.CreditWithdrawn(CLIENT, OTHER, 1), rated(1),
    attested(1), ev.ReputationDeployed(OTHER), disputed(1), resolved(1), ev.CourtCredited(CLIENT, 5),
    ev.CourtWithdrawn(CLIENT, OTHER, 2), ev.ArbiterChanged(OTHER), ev.CourtDeployed(OTHER, OTHER, 1, 2, 3),
]  # fmt: skip


@given(st.lists(st.sampled_from(SAMPLES), max_size=25))
def test_touched__of_any_events__names_every_row_that_the_fold_reads(events):
    state = Recording(MemoryState())
    fold_block(1, [PlacedEvent(i, event) for i, event in enumerate(events)], state)
    named = {(row_type, key) for row_type, keys in touched(events).items() for key in keys}
    assert state.read <= named
