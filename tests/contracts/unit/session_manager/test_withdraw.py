import ape
import pytest

from tests.contracts.world import DEPOSIT, EMPTY, event


@pytest.fixture
def credited(world):
    """300 owed to the operator, the rest of a deposit to the client."""
    world.settled(300, 3)


@pytest.mark.rule("SM-37")
def test_withdraw__to_another_account__pays_all_and_logs(world, credited):
    assert world.manager.withdraw.call(world.key, sender=world.operator) == 300
    receipt = world.manager.withdraw(world.key, sender=world.operator)
    assert world.token.balanceOf(world.key) == 300
    assert world.manager.credit_of(world.operator) == 0
    assert world.manager.credit_of(world.client) == DEPOSIT - 300
    assert world.held() == DEPOSIT - 300
    assert event(receipt, "CreditWithdrawn") == {
        "account": world.operator.address,
        "to": world.key.address,
        "amount": 300,
    }


@pytest.mark.rule("SM-37")
def test_withdraw__by_both__leaves_nothing(world, credited):
    for account in (world.operator, world.client):
        world.manager.withdraw(account, sender=account)
    assert world.held() == 0


@pytest.mark.rule("SM-37")
def test_withdraw__without_credit__reverts(world, credited):
    with ape.reverts("sessions: no credit"):
        world.manager.withdraw(world.other, sender=world.other)


@pytest.mark.rule("SM-37")
def test_withdraw__twice__reverts(world, credited):
    world.manager.withdraw(world.operator, sender=world.operator)
    with ape.reverts("sessions: no credit"):
        world.manager.withdraw(world.operator, sender=world.operator)


@pytest.mark.rule("SM-37")
def test_withdraw__to_nobody_or_the_manager__reverts(world, credited):
    for receiver in (EMPTY, world.manager):
        with ape.reverts("sessions: bad receiver"):
            world.manager.withdraw(receiver, sender=world.operator)
