import ape
import pytest

from tests.contracts.world import Record, events


@pytest.mark.rule("EL-11")
def test_attest_many__of_two_sessions__records_all_in_order(world):
    first, second = world.settled(300, 3), world.settled(200, 2)
    records = [Record(first, tool="a"), Record(second, tool="a"), Record(first, tool="b", cost=200)]
    signed = [world.signed_record(record) for record in records]
    receipt = world.experience.attest_many(records, signed, sender=world.other)
    logged = events(receipt, "ExperienceAttested")
    assert [(bytes(log["session_id"]), log["tool"]) for log in logged] == [
        (first, "a"), (second, "a"), (first, "b"),
    ]  # fmt: skip
    assert list(world.experience.records_of(first)) == [300, 2]
    assert list(world.experience.records_of(second)) == [100, 1]


@pytest.mark.rule("EL-11")
def test_attest_many__with_one_bad__records_none(world):
    session_id = world.settled(300, 3)
    records = [Record(session_id, tool="a"), Record(session_id, tool="b")]
    signed = [world.signed_record(records[0]), world.signed_record(records[0])]
    with ape.reverts("experience: bad signature"):
        world.experience.attest_many(records, signed, sender=world.other)
    assert list(world.experience.records_of(session_id)) == [0, 0]


@pytest.mark.rule("EL-6", "EL-11")
def test_attest_many__with_a_tool_twice__reverts(world):
    record = Record(world.settled(300, 3))
    with ape.reverts("experience: already attested"):
        world.experience.attest_many([record] * 2, [world.signed_record(record)] * 2, sender=world.other)


@pytest.mark.rule("EL-11")
def test_attest_many__with_fewer_signatures__reverts(world):
    record = Record(world.settled())
    for signed in ([], [world.signed_record(record)] * 2):
        with ape.reverts("experience: one signature per record"):
            world.experience.attest_many([record], signed, sender=world.other)


@pytest.mark.rule("EL-11")
def test_attest_many__of_none__records_nothing(world):
    receipt = world.experience.attest_many([], [], sender=world.other)
    assert list(receipt.events) == []


@pytest.mark.rule("EL-11")
def test_attest_many__of_16__is_accepted_17_reverts(world):
    session_id = world.settled(300, 30)
    records = [Record(session_id, tool=f"tool{i}", cost=1) for i in range(17)]
    signed = [world.signed_record(record) for record in records]
    with ape.reverts():
        world.experience.attest_many(records, signed, sender=world.other)
    world.experience.attest_many(records[:16], signed[:16], sender=world.other)
    assert list(world.experience.records_of(session_id)) == [16, 16]


@pytest.mark.rule("EL-3", "EL-11")
def test_attest_many__of_clients_of_every_kind__records_all(world):
    """A key, a wallet contract and an account with delegated code, carried by one relayer."""
    wallet, bought = world.wallet()
    world.settle(bought, signer=world.key)
    by_key, by_delegate = world.settled(300, 3), world.settled(300, 3, client=world.other)
    world.delegate(world.other, wallet)
    wallet.answer(1, b"known", sender=world.key)
    records = [Record(by_key), Record(bought), Record(by_delegate)]
    signed = [world.signed_record(records[0]), b"known", world.signed_record(records[2], world.other)]
    receipt = world.experience.attest_many(records, signed, sender=world.key)
    logged = events(receipt, "ExperienceAttested")
    assert [bytes(log["session_id"]) for log in logged] == [by_key, bought, by_delegate]


@pytest.mark.rule("EL-7", "EL-11")
def test_attest_many__beyond_what_was_paid__records_none(world):
    session_id = world.settled(300, 3)
    records = [Record(session_id, tool=tool, cost=151) for tool in ("a", "b")]
    signed = [world.signed_record(record) for record in records]
    with ape.reverts("experience: costs above what was paid"):
        world.experience.attest_many(records, signed, sender=world.other)
    assert list(world.experience.records_of(session_id)) == [0, 0]


@pytest.mark.rule("EL-8", "EL-11")
def test_attest_many__of_more_records_than_calls__records_none(world):
    session_id = world.settled(300, 1)
    records = [Record(session_id, tool=tool, cost=1) for tool in ("a", "b")]
    signed = [world.signed_record(record) for record in records]
    with ape.reverts("experience: more records than calls"):
        world.experience.attest_many(records, signed, sender=world.other)
    assert list(world.experience.records_of(session_id)) == [0, 0]
