"""What was signed for a session that a reorg replaces fits no other choice, but fits the same one again."""

import ape
import pytest

from tests.contracts.world import Record


@pytest.mark.rule("SM-42")
def test_reorg__that_replaces_a_session__leaves_voucher_rating_and_record_without_one(world):
    before = world.chain.snapshot()
    start = world.now()
    world.at(start + 10)
    world.chain.mine()
    old = world.open()
    voucher, rating = world.voucher(old, 300, 3), world.rating(old, 80)
    record = Record(old)
    signed = world.signed_record(record)
    world.chain.restore(before)
    world.at(start + 11)
    world.chain.mine()
    new = world.open()
    assert new != old
    assert world.manager.sessions(old).status == 0
    with ape.reverts("sessions: not the operator"):
        world.manager.settle(old, 300, 3, voucher, sender=world.operator)
    with ape.reverts("sessions: bad voucher"):
        world.manager.settle(new, 300, 3, voucher, sender=world.operator)
    world.settle(new, 300, 3)
    with ape.reverts("reputation: session not settled"):
        world.reputation.rate_by_signature(old, 80, rating, sender=world.other)
    with ape.reverts("reputation: bad signature"):
        world.reputation.rate_by_signature(new, 80, rating, sender=world.other)
    with ape.reverts("experience: session not settled"):
        world.experience.attest(record, signed, sender=world.other)
    with ape.reverts("experience: bad signature"):
        world.experience.attest(record._replace(session_id=new), signed, sender=world.other)


@pytest.mark.rule("SM-12", "SM-28", "SM-42")
def test_reorg__behind_the_snapshot__leaves_the_id_to_the_same_choice_and_a_voucher_up_to_the_new_deposit(world):
    choice = world.choice()
    before = world.chain.snapshot()
    old = world.open(choice=choice)
    above, below = world.voucher(old, 960, 9), world.voucher(old, 900, 9)
    world.chain.restore(before)
    world.registry.transfer_node(1, world.other, sender=world.operator)
    world.registry.accept_node(1, sender=world.other)
    assert world.open(choice=choice, deposit=950, duration=77) == old
    with ape.reverts("sessions: voucher above deposit"):
        world.manager.settle(old, 960, 9, above, sender=world.other)
    world.manager.settle(old, 900, 9, below, sender=world.other)
    assert world.manager.credit_of(world.other) == 900


@pytest.mark.rule("SM-7", "SM-42")
def test_reorg__of_the_snapshot__refuses_the_old_choice_and_the_old_authorisation(world):
    before = world.chain.snapshot()
    start = world.now()
    world.at(start + 10)
    world.chain.mine()
    terms = world.terms()
    signature = world.authorization(terms)
    world.chain.restore(before)
    world.at(start + 11)
    world.chain.mine()
    with ape.reverts("sessions: snapshot not on this chain"):
        world.open(choice=terms.choice)
    with ape.reverts("sessions: snapshot not on this chain"):
        world.open_for(terms, signature=signature)


@pytest.mark.rule("SM-13")
def test_open__of_the_same_terms_after_the_end__gives_another_session(world):
    """Ids are never used again: the draw's number is in the id, and an ended record stays."""
    choice = world.choice()
    first = world.open(choice=choice)
    voucher = world.voucher(first, 300, 3)
    world.settle(first, 0, 0)
    with ape.reverts("sessions: attempt not later"):
        world.open(choice=choice)
    second = world.open(choice=choice._replace(nonce=1))
    assert second != first
    assert world.manager.sessions(first).status == 3
    with ape.reverts("sessions: bad voucher"):
        world.manager.settle(second, 300, 3, voucher, sender=world.operator)
