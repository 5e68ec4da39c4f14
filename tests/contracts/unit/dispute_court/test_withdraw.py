import ape
import pytest

from tests.contracts.world import BOND, EMPTY, event


@pytest.fixture
def awarded(world, dispute_id):
    """400 and the bond owed to the client."""
    world.court.resolve(world.disputed(dispute_id), 400, sender=world.arbiter)


@pytest.mark.rule("DC-22")
def test_withdraw__to_another_account__pays_all_and_logs(world, awarded):
    assert world.court.withdraw.call(world.key, sender=world.client) == BOND + 400
    receipt = world.court.withdraw(world.key, sender=world.client)
    assert world.token.balanceOf(world.key) == BOND + 400
    assert (world.court.credit_of(world.client), world.token.balanceOf(world.court)) == (0, 0)
    assert event(receipt, "CourtWithdrawn") == {
        "account": world.client.address,
        "to": world.key.address,
        "amount": BOND + 400,
    }


@pytest.mark.rule("DC-22")
def test_withdraw__twice_or_without_credit__reverts(world, awarded):
    world.court.withdraw(world.client, sender=world.client)
    for account in (world.client, world.operator, world.arbiter):
        with ape.reverts("court: no credit"):
            world.court.withdraw(account, sender=account)


@pytest.mark.rule("DC-22")
def test_withdraw__to_nobody_or_the_court__reverts(world, awarded):
    for receiver in (EMPTY, world.court):
        with ape.reverts("court: bad receiver"):
            world.court.withdraw(receiver, sender=world.client)
    assert world.court.credit_of(world.client) == BOND + 400
