"""The hand-over of the only privileged office, in two steps."""

import ape
import pytest

from tests.contracts.world import EMPTY, STAKE, event


@pytest.mark.rule("DC-24")
def test_accept_arbiter__when_offered__hands_over_and_logs(world, dispute_id):
    receipt = world.court.offer_arbiter(world.other, sender=world.arbiter)
    assert list(receipt.events) == []
    assert (world.court.arbiter(), world.court.pending_arbiter()) == (world.arbiter, world.other)
    receipt = world.court.accept_arbiter(sender=world.other)
    assert (world.court.arbiter(), world.court.pending_arbiter()) == (world.other, EMPTY)
    assert event(receipt, "ArbiterChanged") == {"arbiter": world.other.address}
    with ape.reverts("court: not the arbiter"):
        world.court.resolve(world.disputed(dispute_id), 1, sender=world.arbiter)
    world.court.resolve(world.disputed(dispute_id), 1, sender=world.other)


@pytest.mark.rule("DC-24")
def test_offer_arbiter__by_anybody_else__reverts(world):
    for account in (world.deployer, world.other):
        with ape.reverts("court: not the arbiter"):
            world.court.offer_arbiter(account, sender=account)


@pytest.mark.rule("DC-24")
def test_offer_arbiter__alone__leaves_the_office(world, dispute_id):
    world.court.offer_arbiter(world.other, sender=world.arbiter)
    with ape.reverts("court: not the arbiter"):
        world.court.resolve(world.disputed(dispute_id), 1, sender=world.other)
    with ape.reverts("court: not the arbiter"):
        world.court.offer_arbiter(world.other, sender=world.other)
    world.court.resolve(world.disputed(dispute_id), 1, sender=world.arbiter)


@pytest.mark.rule("DC-24")
def test_accept_arbiter__twice_taken_back_or_by_anybody_else__reverts(world):
    world.court.offer_arbiter(world.other, sender=world.arbiter)
    for account in (world.key, world.arbiter):
        with ape.reverts("court: not offered to you"):
            world.court.accept_arbiter(sender=account)
    world.court.offer_arbiter(EMPTY, sender=world.arbiter)
    with ape.reverts("court: not offered to you"):
        world.court.accept_arbiter(sender=world.other)
    world.court.offer_arbiter(world.other, sender=world.arbiter)
    world.court.accept_arbiter(sender=world.other)
    with ape.reverts("court: not offered to you"):
        world.court.accept_arbiter(sender=world.other)


@pytest.mark.rule("DC-28")
def test_arbiter__without_a_dispute__can_slash_hold_and_release_nothing(world, session_id):
    with ape.reverts("registry: not the court"):
        world.registry.slash(1, 1, sender=world.arbiter)
    for method in (world.registry.hold, world.registry.release):
        with ape.reverts("registry: not the court"):
            method(1, sender=world.arbiter)
    with ape.reverts("court: not open"):
        world.court.resolve(session_id, 0, sender=world.arbiter)
    assert world.registry.nodes(1).stake == STAKE
