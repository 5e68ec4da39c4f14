import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import Record, event, high_s


@pytest.fixture
def settled(world):
    """A session settled at 300 for 3 calls."""
    return world.settled(300, 3)


def attest(world, record, signature=None):
    signature = world.signed_record(record) if signature is None else signature
    return world.experience.attest(record, signature, sender=world.other)


@pytest.mark.rule("EL-3", "EL-10")
def test_attest__by_client__stores_and_logs_every_field(world):
    settled = world.settled(300, 3, world.service(1, category="data:second"))
    record = Record(settled)
    receipt = attest(world, record)
    assert world.experience.attested(settled, keccak(text=record.tool)) is True
    assert list(world.experience.records_of(settled)) == [100, 1]
    assert event(receipt, "ExperienceAttested") == {
        "session_id": settled,
        "service_id": 3,
        "need_id": keccak(text=record.need),
        "tool": "search",
        "need": "find a paper",
        "task": "task-7",
        "worked": True,
        "calls": 2,
        "failures": 1,
        "judge_score": 90,
        "latency_ms": 250,
        "cost": 100,
        "message": "second call succeeded",
        "note": "slow at first",
    }


@pytest.mark.rule("EL-9")
def test_attest__with_texts_at_their_bounds__is_accepted(world, settled):
    record = Record(
        settled, "t" * 64, "n" * 64, "k" * 64, False, 2**32 - 1, 2**32 - 1, 0, 2**32 - 1, 300, "m" * 160, "o" * 280
    )
    logged = event(attest(world, record), "ExperienceAttested")
    assert (logged["tool"], logged["message"], logged["note"]) == ("t" * 64, "m" * 160, "o" * 280)
    assert (logged["calls"], logged["failures"], logged["latency_ms"]) == (2**32 - 1,) * 3


@pytest.mark.rule("EL-9")
@pytest.mark.parametrize("field", ["tool", "need", "task", "message", "note"])
def test_attest__with_a_text_one_too_long__reverts(world, settled, field):
    bound = {"message": 160, "note": 280}.get(field, 64)
    record = Record(settled)._replace(**{field: "x" * (bound + 1)})
    with ape.reverts():
        attest(world, record)


@pytest.mark.rule("EL-9", "EL-10")
def test_attest__with_empty_texts_but_the_tool__is_accepted(world, settled):
    record = Record(settled, need="", task="", message="", note="")
    assert event(attest(world, record), "ExperienceAttested")["need_id"] == keccak(b"")


@pytest.mark.rule("EL-10")
def test_attest__with_text_beyond_ascii__logs_the_same_bytes(world, settled):
    record = Record(settled, message="für 3 € gelöst")
    assert event(attest(world, record), "ExperienceAttested")["message"] == "für 3 € gelöst"


@pytest.mark.rule("EL-9")
def test_attest__with_empty_tool__reverts(world, settled):
    with ape.reverts("experience: empty tool"):
        attest(world, Record(settled, tool=""))


@pytest.mark.rule("EL-9")
@pytest.mark.parametrize("score", [101, 254])
def test_attest__with_judge_score_above_100__reverts(world, settled, score):
    with ape.reverts("experience: judge score above 100"):
        attest(world, Record(settled, judge_score=score))


@pytest.mark.rule("EL-9")
@pytest.mark.parametrize("score", [0, 100, 255])
def test_attest__with_score_at_the_edges_or_no_judge__is_accepted(world, settled, score):
    receipt = attest(world, Record(settled, judge_score=score))
    assert event(receipt, "ExperienceAttested")["judge_score"] == score


@pytest.mark.rule("EL-13")
@pytest.mark.parametrize("calls", [0, 1, 2**32 - 2])
def test_attest__with_as_many_failures_as_calls__is_accepted_one_more_reverts(world, settled, calls):
    with ape.reverts("experience: more failures than calls"):
        attest(world, Record(settled, calls=calls, failures=calls + 1))
    logged = event(attest(world, Record(settled, calls=calls, failures=calls)), "ExperienceAttested")
    assert (logged["calls"], logged["failures"]) == (calls, calls)


@pytest.mark.rule("EL-2")
def test_attest__before_settlement__reverts(world, session_id):
    for unsettled in (session_id, b"\1" * 32):
        with ape.reverts("experience: session not settled"):
            attest(world, Record(unsettled))


@pytest.mark.rule("EL-5")
def test_attest__of_own_node__reverts(world):
    session_id = world.settled(client=world.operator)
    record = Record(session_id)
    with ape.reverts("experience: own node"):
        attest(world, record, world.signed_record(record, world.operator))


@pytest.mark.rule("EL-6")
def test_attest__twice_of_a_tool__reverts(world, settled):
    attest(world, Record(settled))
    with ape.reverts("experience: already attested"):
        attest(world, Record(settled, note="changed my mind"))
    attest(world, Record(settled, tool="fetch"))
    assert list(world.experience.records_of(settled)) == [200, 2]


@pytest.mark.rule("EL-6")
def test_attest__of_a_tool_in_another_session__is_accepted(world, settled):
    attest(world, Record(settled))
    attest(world, Record(world.settled()))


@pytest.mark.rule("EL-7")
def test_attest__up_to_what_was_paid__is_accepted_one_more_reverts(world, settled):
    attest(world, Record(settled, cost=120))
    with ape.reverts("experience: costs above what was paid"):
        attest(world, Record(settled, tool="fetch", cost=181))
    attest(world, Record(settled, tool="fetch", cost=180))
    with ape.reverts("experience: costs above what was paid"):
        attest(world, Record(settled, tool="parse", cost=1))
    attest(world, Record(settled, tool="parse", cost=0))
    assert list(world.experience.records_of(settled)) == [300, 3]


@pytest.mark.rule("EL-7")
def test_attest__with_the_largest_cost__reverts(world, settled):
    with ape.reverts("experience: costs above what was paid"):
        attest(world, Record(settled, cost=2**256 - 1))


@pytest.mark.rule("EL-8")
def test_attest__more_often_than_calls__reverts(world):
    session_id = world.settled(300, 2)
    for tool in ("a", "b"):
        attest(world, Record(session_id, tool=tool))
    with ape.reverts("experience: more records than calls"):
        attest(world, Record(session_id, tool="c"))


@pytest.mark.rule("EL-8")
def test_attest__of_session_without_calls__is_accepted_once(world):
    session_id = world.settled(0, 0)
    attest(world, Record(session_id, cost=0, worked=False))
    with ape.reverts("experience: more records than calls"):
        attest(world, Record(session_id, tool="b", cost=0))
    assert list(world.experience.records_of(session_id)) == [0, 1]


def refuse(world, record, signature):
    with ape.reverts("experience: bad signature"):
        attest(world, record, signature)


@pytest.mark.rule("EL-3")
def test_attest__of_wrong_signer__reverts(world, settled):
    record = Record(settled)
    for account in (world.operator, world.other, world.key):
        refuse(world, record, world.signed_record(record, account))


@pytest.mark.rule("EL-4")
@pytest.mark.parametrize(
    "changes",
    [
        {"tool": "x"}, {"need": "x"}, {"task": "x"}, {"worked": False}, {"calls": 3}, {"failures": 0},
        {"judge_score": 91}, {"latency_ms": 0}, {"cost": 99}, {"message": ""}, {"note": ""},
    ],
)  # fmt: skip
def test_attest__with_a_field_changed_behind_the_signature__reverts(world, settled, changes):
    record = Record(settled)
    refuse(world, record._replace(**changes), world.signed_record(record))


@pytest.mark.rule("EL-4")
def test_attest__signed_for_another_session__reverts(world, settled):
    refuse(world, Record(settled), world.signed_record(Record(world.settled())))


@pytest.mark.rule("EL-3")
@pytest.mark.parametrize(
    "domain", [{"name": "X"}, {"version": "2"}, {"chainId": 1}, {"verifyingContract": "0x" + "11" * 20}]
)
def test_attest__of_another_domain__reverts(world, settled, domain):
    record = Record(settled)
    refuse(world, record, world.signed_record(record, **domain))


@pytest.mark.rule("EL-3", "MOD-5")
def test_attest__with_malformed_signature__reverts(world, settled):
    record = Record(settled)
    signature = world.signed_record(record)
    for bad in (high_s(signature), signature[:64], b"", signature + b"\0"):
        refuse(world, record, bad)


@pytest.fixture
def wallet(world):
    """A wallet contract with a session settled at 300 for 3 calls."""
    wallet, session_id = world.wallet()
    world.settle(session_id, signer=world.key)
    wallet.session_id = session_id
    return wallet


@pytest.mark.rule("EL-3", "MOD-5")
@pytest.mark.parametrize("signature", [b"known", b"", b"\7" * 65, b"\7" * 500, b"\7" * 1024])
def test_attest__approved_by_wallet_contract__is_accepted(world, wallet, signature):
    wallet.answer(1, signature, sender=world.other)
    attest(world, Record(wallet.session_id), signature)
    assert list(world.experience.records_of(wallet.session_id)) == [100, 1]


@pytest.mark.rule("EL-12", "MOD-5")
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 6, 7, 8])
def test_attest__when_the_wallet_says_no_or_rubbish__reverts_with_the_ledgers_reason(world, wallet, mode):
    wallet.answer(mode, b"right", sender=world.other)
    refuse(world, Record(wallet.session_id), b"wrong")
    record = Record(wallet.session_id)
    refuse(world, record, world.signed_record(record, world.key))


@pytest.mark.rule("MOD-5")
def test_attest__of_a_signature_above_1024_bytes__reverts_before_the_wallet_is_asked(world, wallet):
    wallet.answer(5, b"", sender=world.other)
    with ape.reverts() as refused:
        attest(world, Record(wallet.session_id), b"\7" * 1025)
    assert "signature" not in refused.value.message


@pytest.mark.rule("EL-3", "MOD-5")
def test_attest__of_account_with_delegated_code__takes_its_own_key(world, settled):
    world.delegate(world.client, world.deployer.deploy(world.project.Wallet1271))
    record = Record(settled)
    refuse(world, record, world.signed_record(record, world.other))
    attest(world, record)
    assert list(world.experience.records_of(settled)) == [100, 1]
