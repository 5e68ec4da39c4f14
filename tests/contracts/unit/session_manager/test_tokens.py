"""Tokens of every kind, and money that arrives by mistake: nobody's money is locked and no payout changes."""

from dataclasses import replace

import ape
import pytest

from tests.contracts.world import (
    CHALLENGE_PERIOD,
    DEPOSIT,
    DURATION,
    MAX_DURATION,
    MAX_SNAPSHOT_AGE,
    MINTED,
    STAKE,
)

PLAIN, LYING, FEE, REFUSING, CALLING = range(5)


def paying(world, token):
    """The world with sessions paid in another token."""
    manager = world.deployer.deploy(
        world.project.SessionManager, token, world.registry, CHALLENGE_PERIOD, MAX_DURATION, MAX_SNAPSHOT_AGE
    )
    for account in (world.client, world.other):
        token.mint(account, MINTED, sender=world.deployer)
    return replace(world, manager=manager, token=token)


@pytest.fixture
def odd(world):
    return paying(world, world.deployer.deploy(world.project.OddToken, PLAIN))


@pytest.mark.rule("SM-40")
def test_open_settle_withdraw__with_token_that_returns_nothing__work(world):
    silent = paying(world, world.deployer.deploy(world.project.NoReturnToken))
    silent.settled(300, 3)
    silent.manager.withdraw(silent.key, sender=silent.operator)
    assert silent.token.balanceOf(silent.key) == 300
    assert silent.held() == DEPOSIT - 300


@pytest.mark.rule("SM-40")
def test_open__with_token_that_returns_false__reverts(odd):
    odd.token.set_mode(LYING, sender=odd.deployer)
    with ape.reverts("token: transfer refused"):
        odd.open()
    assert odd.manager.active_sessions(1) == 0


@pytest.mark.rule("SM-40")
def test_top_up__with_token_that_returns_false__reverts(odd):
    session_id = odd.open()
    odd.token.set_mode(LYING, sender=odd.deployer)
    with ape.reverts("token: transfer refused"):
        odd.manager.top_up(session_id, 5, sender=odd.client)
    assert odd.manager.sessions(session_id).deposit == DEPOSIT


@pytest.mark.rule("SM-40")
def test_withdraw__with_token_that_returns_false__reverts_and_keeps_the_credit(odd):
    odd.settled(300, 3)
    odd.token.set_mode(LYING, sender=odd.deployer)
    with ape.reverts("token: transfer refused"):
        odd.manager.withdraw(odd.operator, sender=odd.operator)
    assert odd.manager.credit_of(odd.operator) == 300


@pytest.mark.rule("SM-40")
def test_open__with_token_that_takes_a_fee__reverts(odd):
    odd.token.set_mode(FEE, sender=odd.deployer)
    with ape.reverts("token: wrong amount"):
        odd.open()


@pytest.mark.rule("SM-39")
def test_settle__with_refused_recipient__locks_nobodys_money(odd):
    session_id = odd.open()
    odd.token.set_mode(REFUSING, sender=odd.deployer)
    odd.token.refuse(odd.operator, sender=odd.deployer)
    odd.settle(session_id, 300, 3)
    with ape.reverts():
        odd.manager.withdraw(odd.operator, sender=odd.operator)
    odd.manager.withdraw(odd.client, sender=odd.client)
    assert odd.token.balanceOf(odd.client) == MINTED - 300
    odd.manager.withdraw(odd.key, sender=odd.operator)
    assert odd.token.balanceOf(odd.key) == 300


@pytest.mark.rule("MOD-6")
def test_withdraw__with_token_that_calls_back__is_not_entered_again(odd):
    """The wallet that the token calls has credit of its own: nothing but the lock refuses it."""
    odd.settled(300, 3)
    wallet = odd.creditor()
    odd.call_back(wallet, odd.manager, odd.manager.withdraw.encode_input(odd.key))
    odd.manager.withdraw(odd.operator, sender=odd.operator)
    assert (odd.token.called(), odd.token.reentered()) == (True, False)
    assert odd.token.balanceOf(odd.operator) == 300
    assert (odd.manager.credit_of(wallet), odd.token.balanceOf(odd.key)) == (DEPOSIT, 0)


@pytest.mark.rule("MOD-6")
def test_views__during_a_transfer__cannot_be_read(odd):
    """What a callback could read would be half a change: the lock covers views too."""
    odd.settled(300, 3)
    odd.token.call_back(odd.manager, odd.manager.credit_of.encode_input(odd.client), sender=odd.deployer)
    odd.token.set_mode(CALLING, sender=odd.deployer)
    odd.manager.withdraw(odd.operator, sender=odd.operator)
    assert (odd.token.called(), odd.token.reentered()) == (True, False)


@pytest.mark.rule("SM-38")
def test_donation__to_the_manager__changes_no_payout(world, session_id):
    world.token.mint(world.manager, 77_777, sender=world.deployer)
    world.settle(session_id, 300, 3)
    assert world.manager.credit_of(world.operator) == 300
    assert world.manager.credit_of(world.client) == DEPOSIT - 300
    for account in (world.operator, world.client):
        world.manager.withdraw(account, sender=account)
    assert world.held() == 77_777
    with ape.reverts("sessions: no credit"):
        world.manager.withdraw(world.client, sender=world.client)


@pytest.mark.rule("NR-33")
def test_donation__to_the_registry__changes_no_stake(world):
    world.token.mint(world.registry, 77_777, sender=world.deployer)
    assert world.registry.nodes(1).stake == STAKE
    world.registry.request_unstake(1, STAKE, sender=world.operator)
    world.at(world.registry.nodes(1).release_at)
    before = world.token.balanceOf(world.operator)
    world.registry.withdraw_stake(1, sender=world.operator)
    assert world.token.balanceOf(world.operator) - before == STAKE


def staking(world, mode):
    token = world.deployer.deploy(world.project.OddToken, mode)
    registry = world.deployer.deploy(world.project.NodeRegistry, token, 1, 1, 1, world.court)
    token.mint(world.operator, MINTED, sender=world.deployer)
    return token, registry


@pytest.mark.rule("NR-34")
@pytest.mark.parametrize(("mode", "reason"), [(LYING, "token: transfer refused"), (FEE, "token: wrong amount")])
def test_register_node__with_bad_token__reverts(world, mode, reason):
    _, registry = staking(world, mode)
    with ape.reverts(reason):
        registry.register_node("http://node", 10, sender=world.operator)
    assert registry.node_count() == 0


@pytest.mark.rule("NR-34")
def test_slash_and_withdraw_stake__with_token_that_lies_later__revert_whole(world):
    token, registry = staking(world, PLAIN)
    registry.register_node("http://node", 10, sender=world.operator)
    registry.request_unstake(1, 4, sender=world.operator)
    token.set_mode(LYING, sender=world.deployer)
    world.at(registry.nodes(1).release_at)
    with ape.reverts("token: transfer refused"):
        registry.withdraw_stake(1, sender=world.operator)
    with ape.reverts("token: transfer refused"):
        registry.slash(1, 3, sender=world.court)
    assert (registry.nodes(1).stake, registry.nodes(1).unbonding) == (6, 4)


@pytest.mark.rule("SM-38")
def test_solvency__over_a_mixed_run__balance_is_deposits_and_credits(world):
    first, second, third = world.open(), world.open(client=world.other), world.open(2)
    world.manager.top_up(second, 40, sender=world.client)
    world.settle(first, 300, 3)
    world.manager.request_close(third, sender=world.client)
    world.manager.withdraw(world.key, sender=world.operator)
    held = sum(world.manager.sessions(session_id).deposit for session_id in (first, second, third))
    owed = sum(world.manager.credit_of(a) for a in (world.client, world.other, world.operator, world.rival))
    assert (held, owed) == (2 * DEPOSIT + 40, DEPOSIT - 300)
    assert world.held() == held + owed
    world.at(world.now() + DURATION + CHALLENGE_PERIOD)
    for session_id in (second, third):
        world.manager.expire(session_id, sender=world.key)
    assert [world.manager.active_sessions(node_id) for node_id in (1, 2)] == [0, 0]
