"""What is signed for one purpose fits no other: not another type, contract, chain or session."""

import ape
import pytest

from tests.contracts.world import RATING, VOUCHER, Record, sign


def signatures(world, session_id):
    """Every signature that a client gives over a session, by what it is, and an open's."""
    record = Record(session_id)
    return {
        "voucher": world.voucher(session_id, 300, 3),
        "rating": world.rating(session_id, 80),
        "record": world.signed_record(record),
        "authorization": world.authorization(world.terms()),
    }


@pytest.mark.rule("SM-29", "RL-8", "EL-3", "SM-19")
@pytest.mark.parametrize("kind", ["voucher", "rating", "record", "authorization"])
def test_signature__of_each_type__is_refused_as_every_other(world, kind):
    session_id = world.open()
    terms = world.terms()
    signed = signatures(world, session_id)[kind]
    if kind != "voucher":
        with ape.reverts("sessions: bad voucher"):
            world.manager.settle(session_id, 300, 3, signed, sender=world.operator)
    world.settle(session_id, 300, 3)
    if kind != "rating":
        with ape.reverts("reputation: bad signature"):
            world.reputation.rate_by_signature(session_id, 80, signed, sender=world.other)
    if kind != "record":
        with ape.reverts("experience: bad signature"):
            world.experience.attest(Record(session_id), signed, sender=world.other)
    if kind != "authorization":
        with ape.reverts("token: bad signature"):
            world.open_for(terms, signature=signed)


@pytest.mark.rule("SM-29", "RL-8", "EL-3")
@pytest.mark.parametrize("domain", ["manager", "reputation", "experience", "registry", "token", "lens"])
def test_signature__for_each_other_contract__is_refused(world, domain):
    elsewhere = {"verifyingContract": str(getattr(world, domain).address)}
    session_id = world.open()
    if domain != "manager":
        with ape.reverts("sessions: bad voucher"):
            voucher = world.voucher(session_id, 300, 3, **elsewhere)
            world.manager.settle(session_id, 300, 3, voucher, sender=world.operator)
    world.settle(session_id, 300, 3)
    if domain != "reputation":
        with ape.reverts("reputation: bad signature"):
            rating = world.rating(session_id, 80, **elsewhere)
            world.reputation.rate_by_signature(session_id, 80, rating, sender=world.other)
    if domain != "experience":
        record = Record(session_id)
        with ape.reverts("experience: bad signature"):
            world.experience.attest(record, world.signed_record(record, **elsewhere), sender=world.other)


@pytest.mark.rule("SM-29", "RL-8", "EL-3")
def test_signature__of_another_chain__is_refused(world):
    session_id = world.open()
    for chain_id in (0, 1, 137, world.chain.chain_id + 1):
        with ape.reverts("sessions: bad voucher"):
            voucher = world.voucher(session_id, 300, 3, chainId=chain_id)
            world.manager.settle(session_id, 300, 3, voucher, sender=world.operator)
    world.settle(session_id, 300, 3)
    record = Record(session_id)
    with ape.reverts("reputation: bad signature"):
        world.reputation.rate_by_signature(session_id, 80, world.rating(session_id, 80, chainId=1), sender=world.other)
    with ape.reverts("experience: bad signature"):
        world.experience.attest(record, world.signed_record(record, chainId=1), sender=world.other)


@pytest.mark.rule("SM-29", "RL-8")
def test_signature__of_a_type_with_other_names_or_widths__is_refused(world):
    """The type's text is in the digest: a look-alike of the same words is another type."""
    session_id = world.open()
    message = {"sessionId": session_id, "amount": 300, "calls": 3}
    named = {"Vaucher": VOUCHER["Voucher"]}
    wide = {"Voucher": [("sessionId", "bytes32"), ("amount", "uint128"), ("calls", "uint256")]}
    for types in (named, wide):
        with ape.reverts("sessions: bad voucher"):
            signed = sign(world.client, world.manager, types, message)
            world.manager.settle(session_id, 300, 3, signed, sender=world.operator)
    world.settle(session_id, 300, 3)
    wide = {"Rating": [RATING["Rating"][0], ("score", "uint256")]}
    with ape.reverts("reputation: bad signature"):
        signed = sign(world.client, world.reputation, wide, {"sessionId": session_id, "score": 80})
        world.reputation.rate_by_signature(session_id, 80, signed, sender=world.other)


@pytest.mark.rule("SM-29")
def test_voucher__of_a_second_manager_in_the_same_suite__is_refused(world):
    second = world.in_token(world.token)
    choice = world.choice(nonce=0)
    first_id, second_id = world.open(choice=choice), second.open(choice=choice)
    assert first_id != second_id
    voucher = world.voucher(first_id, 300, 3)
    with ape.reverts("sessions: bad voucher"):
        second.manager.settle(second_id, 300, 3, voucher, sender=world.operator)
    with ape.reverts("sessions: not the operator"):
        second.manager.settle(first_id, 300, 3, voucher, sender=world.operator)
