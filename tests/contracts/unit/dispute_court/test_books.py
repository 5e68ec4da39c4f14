"""What the court's books say against its token balance, and tokens that refuse somebody."""

import ape
import pytest

from tests.contracts.world import BOND, RESOLVE_WINDOW, STAKE, event

OPEN = 1
PLAIN, LYING, FEE, REFUSING, CALLING = range(5)


def books(world):
    """The bonds of open disputes and the credits owed."""
    disputes = [world.court.disputes(i) for i in range(1, world.court.dispute_count() + 1)]
    bonds = BOND * sum(dispute.status == OPEN for dispute in disputes)
    parties = (world.client, world.other, world.operator, world.rival, world.arbiter)
    return bonds + sum(world.court.credit_of(account) for account in parties)


@pytest.mark.rule("DC-23")
def test_books__over_a_mixed_run__are_the_balance_after_every_step(world):
    def check():
        assert world.token.balanceOf(world.court) == books(world)

    sessions = [world.settled(), world.settled(), world.settled(client=world.other), world.settled(service_id=2)]
    clients = [world.client, world.client, world.other, world.client]
    for session_id, client in zip(sessions, clients, strict=True):
        world.dispute(session_id, STAKE, client=client)
        check()
    for dispute_id, award in ((1, 700), (2, 0), (3, STAKE)):
        world.court.resolve(world.disputed(dispute_id), award, sender=world.arbiter)
        check()
    for account in (world.client, world.operator):
        world.court.withdraw(world.key, sender=account)
        check()
    world.at(world.now() + RESOLVE_WINDOW)
    world.court.drop(4, sender=world.key)
    check()
    for account in (world.client, world.other):
        world.court.withdraw(account, sender=account)
        check()
    assert world.token.balanceOf(world.court) == 0
    assert [world.registry.nodes(node_id).holds for node_id in (1, 2)] == [0, 0]


@pytest.mark.rule("DC-23")
def test_donation__to_the_court__changes_no_payout(world, dispute_id):
    world.token.mint(world.court, 77_777, sender=world.deployer)
    world.court.resolve(world.disputed(dispute_id), 400, sender=world.arbiter)
    assert world.court.credit_of(world.client) == BOND + 400
    world.court.withdraw(world.key, sender=world.client)
    assert world.token.balanceOf(world.key) == BOND + 400
    assert world.token.balanceOf(world.court) == 77_777


@pytest.mark.rule("DC-25")
def test_withdraw__by_a_blocked_party__locks_nobody_else(world, dispute_id):
    second = world.dispute(world.settled())
    world.court.resolve(world.disputed(dispute_id), 400, sender=world.arbiter)
    world.token.set_blocked(world.client, True, sender=world.deployer)
    world.court.resolve(world.disputed(second), 0, sender=world.arbiter)
    with ape.reverts("token: blocked"):
        world.court.withdraw(world.client, sender=world.client)
    before = world.token.balanceOf(world.operator)
    world.court.withdraw(world.operator, sender=world.operator)
    assert world.token.balanceOf(world.operator) - before == BOND
    world.court.withdraw(world.key, sender=world.client)
    assert world.token.balanceOf(world.key) == BOND + 400


@pytest.mark.rule("DC-25")
def test_resolve_and_drop__for_blocked_parties__are_not_stopped(world, dispute_id):
    second = world.dispute(world.settled())
    for account in (world.client, world.operator):
        world.token.set_blocked(account, True, sender=world.deployer)
    world.court.resolve(world.disputed(dispute_id), 400, sender=world.arbiter)
    world.at(world.now() + RESOLVE_WINDOW)
    world.court.drop(second, sender=world.other)
    assert world.court.credit_of(world.client) == 2 * BOND + 400


@pytest.mark.rule("DC-25")
def test_drop__of_a_blocked_court__still_ends_and_releases(world, dispute_id):
    world.token.set_blocked(world.court, True, sender=world.deployer)
    with ape.reverts("token: blocked"):
        world.court.resolve(world.disputed(dispute_id), 400, sender=world.arbiter)
    world.at(world.now() + RESOLVE_WINDOW)
    world.court.drop(dispute_id, sender=world.other)
    assert world.registry.nodes(1).holds == 0
    assert world.court.credit_of(world.client) == BOND


@pytest.fixture
def odd(world):
    """The suite in an odd token, plain so far, with an open dispute."""
    odd = world.in_token(world.deployer.deploy(world.project.OddToken, PLAIN))
    odd.dispute(odd.settled())
    return odd


@pytest.mark.rule("DC-27")
@pytest.mark.parametrize(("mode", "reason"), [(LYING, "token: transfer refused"), (FEE, "token: wrong amount")])
def test_open_dispute__with_a_bad_token__reverts_whole(odd, mode, reason):
    session_id = odd.settled()
    odd.token.set_mode(mode, sender=odd.deployer)
    with ape.reverts(reason):
        odd.dispute(session_id)
    assert (odd.court.dispute_count(), odd.registry.nodes(1).holds) == (1, 1)


@pytest.mark.rule("DC-27")
def test_resolve_and_withdraw__with_a_token_that_returns_false__revert_whole(odd):
    odd.token.set_mode(LYING, sender=odd.deployer)
    with ape.reverts("token: transfer refused"):
        odd.court.resolve(odd.disputed(1), 400, sender=odd.arbiter)
    assert (odd.registry.nodes(1).stake, odd.court.disputes(1).status) == (STAKE, OPEN)
    odd.court.resolve(odd.disputed(1), 0, sender=odd.arbiter)
    with ape.reverts("token: transfer refused"):
        odd.court.withdraw(odd.key, sender=odd.operator)
    assert odd.court.credit_of(odd.operator) == BOND


@pytest.mark.rule("DC-27", "MOD-6")
@pytest.mark.parametrize("method", ["withdraw", "credit_of"])
def test_withdraw__with_a_token_that_calls_back__is_not_entered_again(odd, method):
    """The wallet that the token calls has credit of its own: nothing but the lock refuses it."""
    odd.court.resolve(odd.disputed(1), 400, sender=odd.arbiter)
    wallet = odd.creditor(award=300)
    odd.call_back(wallet, odd.court, getattr(odd.court, method).encode_input(odd.client))
    odd.court.withdraw(odd.key, sender=odd.client)
    assert (odd.token.called(), odd.token.reentered()) == (True, False)
    assert odd.token.balanceOf(odd.key) == BOND + 400
    assert odd.court.credit_of(wallet) == odd.token.balanceOf(odd.court) == BOND + 300


@pytest.mark.rule("DC-27", "MOD-6")
def test_resolve__with_a_token_that_calls_back__ends_one_dispute(odd):
    """The other dispute is overdue, so anybody may drop it: nothing but the lock refuses it."""
    odd.at(odd.now() + RESOLVE_WINDOW)
    dispute_id = odd.dispute(odd.settled())
    odd.token.call_back(odd.court, odd.court.drop.encode_input(1), sender=odd.deployer)
    odd.token.set_mode(CALLING, sender=odd.deployer)
    odd.court.resolve(odd.disputed(dispute_id), 400, sender=odd.arbiter)
    assert (odd.token.called(), odd.token.reentered()) == (True, False)
    assert odd.court.credit_of(odd.client) == BOND + 400
    assert (odd.court.disputes(1).status, odd.registry.nodes(1).holds) == (OPEN, 1)


@pytest.mark.rule("DC-23", "DC-27")
def test_resolve__with_a_token_that_starts_to_take_a_fee__owes_what_arrived(odd):
    """Other people's bonds must not pay for the fee."""
    odd.dispute(odd.settled())
    odd.token.set_mode(FEE, sender=odd.deployer)
    receipt = odd.court.resolve(odd.disputed(1), 400, sender=odd.arbiter)
    assert event(receipt, "StakeSlashed")["from_stake"] == 400
    assert event(receipt, "DisputeResolved")["award"] == 399
    assert odd.court.credit_of(odd.client) == BOND + 399
    assert odd.token.balanceOf(odd.court) == books(odd) == 2 * BOND + 399
