import ape
import pytest

from tests.contracts.world import BOND, DEPOSIT, MIN_STAKE, RESOLVE_WINDOW, STAKE, event, events

UPHELD, REFUSED = 2, 3


def resolve(world, dispute_id, award):
    return world.court.resolve(world.disputed(dispute_id), award, sender=world.arbiter)


@pytest.mark.rule("DC-18", "DC-21")
@pytest.mark.parametrize("award", [1, 399, 400])
def test_resolve__with_an_award__slashes_the_node_and_credits_the_client(world, session_id, dispute_id, award):
    receipt = resolve(world, dispute_id, award)
    assert world.court.disputes(dispute_id).status == UPHELD
    assert world.court.credit_of(world.client) == BOND + award
    assert world.court.credit_of(world.operator) == 0
    assert world.token.balanceOf(world.court) == BOND + award
    node = world.registry.nodes(1)
    assert (node.stake, node.holds) == (STAKE - award, 0)
    assert world.registry.nodes(2).stake == STAKE
    assert event(receipt, "DisputeResolved") == {
        "dispute_id": dispute_id,
        "session_id": session_id,
        "node_id": 1,
        "status": UPHELD,
        "award": award,
    }
    assert event(receipt, "StakeSlashed") == {
        "node_id": 1,
        "from_stake": award,
        "from_unbonding": 0,
        "recipient": world.court.address,
    }
    assert event(receipt, "CourtCredited") == {"account": world.client.address, "amount": BOND + award}


@pytest.mark.rule("DC-17", "DC-21")
def test_resolve__with_no_award__refuses_and_credits_the_operator_with_the_bond(world, session_id, dispute_id):
    receipt = resolve(world, dispute_id, 0)
    assert world.court.disputes(dispute_id).status == REFUSED
    assert world.court.credit_of(world.operator) == BOND
    assert world.court.credit_of(world.client) == 0
    node = world.registry.nodes(1)
    assert (node.stake, node.holds) == (STAKE, 0)
    assert events(receipt, "StakeSlashed") == []
    assert event(receipt, "DisputeResolved") == {
        "dispute_id": dispute_id,
        "session_id": session_id,
        "node_id": 1,
        "status": REFUSED,
        "award": 0,
    }
    assert event(receipt, "CourtCredited") == {"account": world.operator.address, "amount": BOND}


@pytest.mark.rule("DC-16")
def test_resolve__above_the_claim__reverts(world, dispute_id):
    for award in (401, 2**256 - 1):
        with ape.reverts("court: award above the claim"):
            resolve(world, dispute_id, award)
    assert world.registry.nodes(1).stake == STAKE


@pytest.mark.rule("DC-19")
def test_resolve__above_the_stake__takes_what_there_is(world):
    dispute_id = world.dispute(world.settled(), 2 * STAKE)
    receipt = resolve(world, dispute_id, 2 * STAKE)
    assert event(receipt, "DisputeResolved")["award"] == STAKE
    assert world.court.credit_of(world.client) == BOND + STAKE
    assert world.registry.nodes(1).stake == 0
    assert world.token.balanceOf(world.court) == BOND + STAKE


@pytest.mark.rule("DC-19")
def test_resolve__of_node_with_nothing_left__gives_the_bond_back(world):
    first, second = world.dispute(world.settled(), STAKE), world.dispute(world.settled(), STAKE)
    resolve(world, first, STAKE)
    receipt = resolve(world, second, STAKE)
    assert (event(receipt, "DisputeResolved")["award"], event(receipt, "DisputeResolved")["status"]) == (0, UPHELD)
    assert world.court.credit_of(world.client) == 2 * BOND + STAKE
    assert world.registry.nodes(1).holds == 0


@pytest.mark.rule("DC-18", "NR-26")
def test_resolve__of_node_whose_stake_unbonds__takes_stake_then_unbonding(world):
    dispute_id = world.dispute(world.settled(), STAKE)
    world.registry.request_unstake(1, STAKE - 100, sender=world.operator)
    receipt = resolve(world, dispute_id, 1_000)
    slashed = event(receipt, "StakeSlashed")
    assert (slashed["from_stake"], slashed["from_unbonding"]) == (100, 900)
    assert (world.registry.nodes(1).stake, world.registry.nodes(1).unbonding) == (0, STAKE - 1_000)
    assert world.court.credit_of(world.client) == BOND + 1_000


@pytest.mark.rule("DC-12", "DC-18")
def test_resolve__after_the_unbonding_period_ended__takes_what_the_hold_kept(world):
    world.registry.request_unstake(1, STAKE - MIN_STAKE, sender=world.operator)
    release_at = world.registry.nodes(1).release_at
    world.at(release_at - 100)
    dispute_id = world.dispute(world.settled(), STAKE)
    world.at(release_at + 100)
    with ape.reverts("registry: held by a dispute"):
        world.registry.withdraw_stake(1, sender=world.operator)
    receipt = resolve(world, dispute_id, MIN_STAKE + 50)
    slashed = event(receipt, "StakeSlashed")
    assert (slashed["from_stake"], slashed["from_unbonding"]) == (MIN_STAKE, 50)
    world.registry.withdraw_stake(1, sender=world.operator)
    assert world.token.balanceOf(world.registry) == STAKE


@pytest.mark.rule("DC-15")
def test_resolve__in_the_last_second_of_the_window__is_accepted(world, dispute_id):
    world.at(world.court.disputes(dispute_id).opened_at + RESOLVE_WINDOW - 1)
    resolve(world, dispute_id, 400)
    assert world.court.credit_of(world.client) == BOND + 400


@pytest.mark.rule("DC-15")
@pytest.mark.parametrize("award", [0, 400])
def test_resolve__at_the_end_of_the_window__reverts(world, dispute_id, award):
    world.at(world.court.disputes(dispute_id).opened_at + RESOLVE_WINDOW)
    with ape.reverts("court: resolve window is over"):
        resolve(world, dispute_id, award)


@pytest.mark.rule("DC-13")
def test_resolve__by_anybody_but_the_arbiter__reverts(world, dispute_id):
    for account in (world.client, world.operator, world.deployer):
        with ape.reverts("court: not the arbiter"):
            world.court.resolve(world.disputed(dispute_id), 400, sender=account)


@pytest.mark.rule("DC-14")
def test_resolve__twice_or_after_it_was_dropped__reverts(world, dispute_id):
    dropped = world.dispute(world.settled())
    resolve(world, dispute_id, 100)
    world.at(world.now() + RESOLVE_WINDOW)
    world.court.drop(dropped, sender=world.other)
    for ended in (dispute_id, dropped):
        with ape.reverts("court: not open"):
            resolve(world, ended, 100)
    assert world.registry.nodes(1).stake == STAKE - 100


@pytest.mark.rule("DC-14")
def test_resolve__of_a_session_that_nobody_disputed__reverts(world, dispute_id):
    for unknown in (b"\0" * 32, dispute_id.to_bytes(32, "big"), world.settled()):
        with ape.reverts("court: not open"):
            world.court.resolve(unknown, 0, sender=world.arbiter)


@pytest.mark.rule("DC-26")
def test_resolve__after_the_node_was_transferred__slashes_the_node_and_the_bond_is_the_sessions_operators(world):
    upheld, refused = world.dispute(world.settled()), world.dispute(world.settled())
    world.registry.transfer_node(1, world.other, sender=world.operator)
    world.registry.accept_node(1, sender=world.other)
    resolve(world, upheld, 400)
    resolve(world, refused, 0)
    assert world.registry.nodes(1).stake == STAKE - 400
    assert (world.court.credit_of(world.operator), world.court.credit_of(world.other)) == (BOND, 0)


@pytest.mark.rule("DC-18")
def test_resolve__with_an_award__changes_nothing_in_the_session_manager(world, session_id, dispute_id):
    resolve(world, dispute_id, 400)
    session = world.manager.sessions(session_id)
    assert (session.status, session.paid) == (3, 300)
    assert world.manager.credit_of(world.operator) == 300
    assert world.manager.credit_of(world.client) == DEPOSIT - 300


@pytest.mark.rule("DC-17")
def test_resolve__with_no_bond_and_no_award__credits_nobody(world):
    free = world.in_token(world.token, bond=0)
    dispute_id = free.dispute(free.settled())
    assert free.token.balanceOf(free.court) == 0
    receipt = resolve(free, dispute_id, 0)
    assert [log.event_name for log in receipt.events] == ["DisputeResolved"]
    assert free.court.credit_of(free.operator) == 0
