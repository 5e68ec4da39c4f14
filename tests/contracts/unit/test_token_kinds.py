"""The whole way of the money over every kind of token: it works, or reverts whole with a sentence and locks nothing."""

import ape
import pytest

from tests.contracts.world import BOND, DEPOSIT, RESOLVE_WINDOW, STAKE

PLAIN, LYING, FEE, REFUSING, CALLING = range(5)
GOOD = ["usdc_like", "no_return", "reentrant", "refusing"]
BAD = {"returns_false": (LYING, "token: transfer refused"), "takes_a_fee": (FEE, "token: wrong amount")}


def suite(world, kind):
    """The suite in a token of that kind."""
    if kind == "usdc_like":
        return world.in_token(world.deployer.deploy(world.project.TestToken))
    if kind == "no_return":
        return world.in_token(world.deployer.deploy(world.project.NoReturnToken))
    odd = world.in_token(world.deployer.deploy(world.project.OddToken, PLAIN))
    if kind == "refusing":
        odd.token.refuse(odd.operator, sender=odd.deployer)
        odd.token.set_mode(REFUSING, sender=odd.deployer)
    return odd


def enter(odd, kind, name):
    """
    Have a re-entrant token call the contract that is tried, during every transfer from now on, as a wallet contract
    that this contract owes money: nothing but the lock refuses it.
    """
    if kind != "reentrant":
        return
    wallet = odd.creditor(award=400 if name == "court" else 0)
    contract = getattr(odd, name)
    if name == "registry":
        odd.token.mint(wallet, 50, sender=odd.deployer)
        wallet.execute(contract, contract.register_node.encode_input("http://wallet", 50), sender=odd.other)
        wallet.execute(contract, contract.request_unstake.encode_input(3, 50), sender=odd.other)
        odd.at(contract.nodes(3).release_at)
        odd.call_back(wallet, contract, contract.withdraw_stake.encode_input(3))
    else:
        odd.call_back(wallet, contract, contract.withdraw.encode_input(odd.other))


def check_not_entered(odd, kind):
    if kind == "reentrant":
        assert (odd.token.called(), odd.token.reentered()) == (True, False)


def balances(suite, *accounts):
    return [suite.token.balanceOf(account) for account in accounts]


@pytest.mark.rule("SM-39", "SM-40", "MOD-3", "MOD-4")
@pytest.mark.parametrize("kind", GOOD)
def test_open_settle_withdraw__in_a_token_that_works__pays_everybody(world, kind):
    odd = suite(world, kind)
    enter(odd, kind, "manager")
    before, held = balances(odd, odd.client, odd.manager)
    session_id = odd.open()
    odd.manager.top_up(session_id, 200, sender=odd.client)
    assert odd.held() == held + DEPOSIT + 200
    odd.settle(session_id, 300, 3)
    if kind == "refusing":
        with ape.reverts():
            odd.manager.withdraw(odd.operator, sender=odd.operator)
    odd.manager.withdraw(odd.client, sender=odd.client)
    odd.manager.withdraw(odd.key, sender=odd.operator)
    assert before - balances(odd, odd.client)[0] == 300
    assert balances(odd, odd.key, odd.manager) == [300, held]
    assert odd.manager.active_sessions(1) == 0
    check_not_entered(odd, kind)


@pytest.mark.rule("NR-33", "NR-34", "MOD-3", "MOD-4")
@pytest.mark.parametrize("kind", ["usdc_like", "no_return", "reentrant"])
def test_register_unstake_withdraw__in_a_token_that_works__pays_the_operator(world, kind):
    odd = suite(world, kind)
    enter(odd, kind, "registry")
    before, held = balances(odd, odd.rival, odd.registry)
    node_id = odd.node(odd.rival)
    odd.registry.add_stake(node_id, 500, sender=odd.rival)
    assert before - balances(odd, odd.rival)[0] == STAKE + 500
    odd.registry.request_unstake(node_id, STAKE + 500, sender=odd.rival)
    odd.at(odd.registry.nodes(node_id).release_at)
    odd.registry.withdraw_stake(node_id, sender=odd.rival)
    assert balances(odd, odd.rival, odd.registry) == [before, held]
    check_not_entered(odd, kind)


@pytest.mark.rule("NR-34")
def test_register_unstake_withdraw__by_a_refused_operator__is_paid_to_whom_the_node_is_given(world):
    odd = suite(world, "refusing")
    odd.registry.request_unstake(1, STAKE, sender=odd.operator)
    odd.at(odd.registry.nodes(1).release_at)
    with ape.reverts():
        odd.registry.withdraw_stake(1, sender=odd.operator)
    odd.registry.transfer_node(1, odd.key, sender=odd.operator)
    odd.registry.accept_node(1, sender=odd.key)
    odd.registry.withdraw_stake(1, sender=odd.key)
    assert balances(odd, odd.key) == [STAKE]


@pytest.mark.rule("DC-25", "DC-27")
@pytest.mark.parametrize("kind", GOOD)
def test_dispute_award_withdraw__in_a_token_that_works__pays_the_client(world, kind):
    odd = suite(world, kind)
    upheld, refused = odd.settled(), odd.settled()
    enter(odd, kind, "court")
    held = balances(odd, odd.court)[0]
    for session_id, award in ((upheld, 400), (refused, 0)):
        odd.dispute(session_id)
        odd.court.resolve(session_id, award, sender=odd.arbiter)
    odd.court.withdraw(odd.key, sender=odd.client)
    assert balances(odd, odd.key) == [BOND + 400]
    odd.court.withdraw(odd.key, sender=odd.operator)
    assert balances(odd, odd.key, odd.court) == [2 * BOND + 400, held]
    check_not_entered(odd, kind)


@pytest.mark.rule("SM-40", "MOD-3", "MOD-4")
@pytest.mark.parametrize("kind", BAD)
def test_open_settle_withdraw__in_a_token_that_turned_bad__reverts_whole_and_keeps_the_books(world, kind):
    mode, reason = BAD[kind]
    odd = suite(world, "odd")
    session_id = odd.open()
    odd.token.set_mode(mode, sender=odd.deployer)
    with ape.reverts(reason):
        odd.open()
    with ape.reverts(reason):
        odd.manager.top_up(session_id, 5, sender=odd.client)
    odd.settle(session_id, 300, 3)
    assert (odd.manager.credit_of(odd.operator), odd.manager.credit_of(odd.client)) == (300, DEPOSIT - 300)
    if mode == LYING:
        with ape.reverts(reason):
            odd.manager.withdraw(odd.key, sender=odd.operator)
    odd.token.set_mode(PLAIN, sender=odd.deployer)
    odd.manager.withdraw(odd.key, sender=odd.operator)
    odd.manager.withdraw(odd.key, sender=odd.client)
    assert balances(odd, odd.key, odd.manager) == [DEPOSIT, 0]


@pytest.mark.rule("NR-34", "MOD-3", "MOD-4")
@pytest.mark.parametrize("kind", BAD)
def test_register_unstake_withdraw__in_a_token_that_turned_bad__reverts_whole(world, kind):
    mode, reason = BAD[kind]
    odd = suite(world, "odd")
    odd.registry.request_unstake(1, 400, sender=odd.operator)
    odd.token.set_mode(mode, sender=odd.deployer)
    with ape.reverts(reason):
        odd.node()
    with ape.reverts(reason):
        odd.registry.add_stake(1, 5, sender=odd.operator)
    assert (odd.registry.node_count(), odd.registry.nodes(1).stake) == (2, STAKE - 400)
    odd.at(odd.registry.nodes(1).release_at)
    if mode == LYING:
        with ape.reverts(reason):
            odd.registry.withdraw_stake(1, sender=odd.operator)
        assert odd.registry.nodes(1).unbonding == 400
    odd.token.set_mode(PLAIN, sender=odd.deployer)
    odd.registry.withdraw_stake(1, sender=odd.operator)
    assert balances(odd, odd.registry) == [2 * STAKE - 400]


@pytest.mark.rule("SM-39", "SM-40")
def test_settle_and_withdraw__of_blocked_accounts__lock_nobody_else(world):
    first, second = world.open(), world.open(client=world.other)
    world.token.set_blocked(world.operator, True, sender=world.deployer)
    world.token.set_blocked(world.client, True, sender=world.deployer)
    world.settle(first, 300, 3)
    world.settle(second, 200, 2, signer=world.other)
    for account in (world.operator, world.client):
        with ape.reverts("token: blocked"):
            world.manager.withdraw(account, sender=account)
    before = world.token.balanceOf(world.other)
    world.manager.withdraw(world.other, sender=world.other)
    assert world.token.balanceOf(world.other) - before == DEPOSIT - 200
    world.manager.withdraw(world.key, sender=world.operator)
    assert world.token.balanceOf(world.key) == 500


@pytest.mark.rule("SM-15", "MOD-3")
def test_open__without_approval__reverts_and_with_permit_by_somebody_else_works(world):
    from tests.contracts.world import sign

    world.token.approve(world.manager, 0, sender=world.client)
    with ape.reverts("token: allowance too small"):
        world.open()
    types = {
        "Permit": [
            ("owner", "address"),
            ("spender", "address"),
            ("value", "uint256"),
            ("nonce", "uint256"),
            ("deadline", "uint256"),
        ]
    }
    message = {
        "owner": world.client.address,
        "spender": world.manager.address,
        "value": DEPOSIT,
        "nonce": world.token.nonces(world.client),
        "deadline": 2**48,
    }
    signed = sign(world.client, world.token, types, message, name="Test dollar", version="2")
    world.token.permit(world.client, world.manager, DEPOSIT, 2**48, signed, sender=world.other)
    world.open()
    assert world.token.allowance(world.client, world.manager) == 0
    with ape.reverts("token: bad signature"):
        world.token.permit(world.client, world.manager, DEPOSIT, 2**48, signed, sender=world.other)


@pytest.mark.rule("SM-15")
def test_open__of_two_clients_and_two_at_once__use_each_ones_own_approval(world):
    """No allowance is shared or overwritten: each open pulls exactly its own deposit."""
    world.token.approve(world.manager, 3 * DEPOSIT, sender=world.client)
    for left in (2, 1, 0):
        world.open()
        assert world.token.allowance(world.client, world.manager) == left * DEPOSIT
    world.open(client=world.other)
    with ape.reverts("token: allowance too small"):
        world.open()


@pytest.mark.rule("DC-20", "DC-25")
def test_drop__in_a_token_that_refuses_the_court__still_lets_the_stake_go(world):
    odd = suite(world, "odd")
    dispute_id = odd.dispute(odd.settled())
    odd.registry.request_unstake(1, STAKE, sender=odd.operator)
    odd.token.refuse(odd.court, sender=odd.deployer)
    odd.token.set_mode(REFUSING, sender=odd.deployer)
    with ape.reverts():
        odd.court.resolve(odd.disputed(dispute_id), 400, sender=odd.arbiter)
    odd.at(odd.now() + RESOLVE_WINDOW)
    odd.court.drop(dispute_id, sender=odd.other)
    odd.at(odd.registry.nodes(1).release_at)
    odd.registry.withdraw_stake(1, sender=odd.operator)
    assert odd.registry.nodes(1).unbonding == 0
