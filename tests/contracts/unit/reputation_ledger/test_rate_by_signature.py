import ape
import pytest

from tests.contracts.world import event, high_s


@pytest.fixture
def settled(world):
    return world.settled()


def refuse(world, session_id, signature, score=80):
    with ape.reverts("reputation: bad signature"):
        world.reputation.rate_by_signature(session_id, score, signature, sender=world.other)


@pytest.mark.rule("RL-7")
def test_rate_by_signature__carried_by_anybody__rates_for_the_client(world, settled):
    receipt = world.reputation.rate_by_signature(settled, 80, world.rating(settled, 80), sender=world.other)
    assert event(receipt, "SessionRated")["client"] == world.client
    assert list(world.reputation.score_of(settled)) == [True, 80]
    assert list(world.reputation.ratings(1)) == [80, 1, 0, 300, 24_000]


@pytest.mark.rule("RL-8")
def test_rate_by_signature__of_wrong_signer__reverts(world, settled):
    for account in (world.operator, world.other):
        refuse(world, settled, world.rating(settled, 80, account))


@pytest.mark.rule("RL-8")
def test_rate_by_signature__of_the_session_key__reverts(world):
    session_id = world.open(signer=world.key.address)
    world.settle(session_id, signer=world.key)
    refuse(world, session_id, world.rating(session_id, 80, world.key))


@pytest.mark.rule("RL-8")
def test_rate_by_signature__of_another_score_or_session__reverts(world, settled):
    refuse(world, settled, world.rating(settled, 81))
    refuse(world, settled, world.rating(world.settled(), 80))


@pytest.mark.rule("RL-8")
@pytest.mark.parametrize(
    "domain", [{"name": "X"}, {"version": "2"}, {"chainId": 1}, {"verifyingContract": "0x" + "11" * 20}]
)
def test_rate_by_signature__of_another_domain__reverts(world, settled, domain):
    refuse(world, settled, world.rating(settled, 80, **domain))


@pytest.mark.rule("RL-8")
def test_rate_by_signature__for_the_manager_as_verifier__reverts(world, settled):
    refuse(world, settled, world.rating(settled, 80, verifyingContract=world.manager.address))


@pytest.mark.rule("RL-8", "MOD-5")
def test_rate_by_signature__malformed__reverts(world, settled):
    signature = world.rating(settled, 80)
    for bad in (high_s(signature), signature[:64], b"", signature + b"\0", b"\0" * 65, signature[:64] + b"\1"):
        refuse(world, settled, bad)


@pytest.mark.rule("RL-3", "RL-7")
def test_rate_by_signature__twice__reverts(world, settled):
    signature = world.rating(settled, 80)
    world.reputation.rate_by_signature(settled, 80, signature, sender=world.other)
    with ape.reverts("reputation: already rated"):
        world.reputation.rate_by_signature(settled, 80, signature, sender=world.other)


@pytest.mark.rule("RL-7")
def test_rate_by_signature__checks_what_rate_checks(world, session_id):
    with ape.reverts("reputation: score above 100"):
        world.reputation.rate_by_signature(session_id, 101, b"", sender=world.other)
    with ape.reverts("reputation: session not settled"):
        world.reputation.rate_by_signature(session_id, 80, world.rating(session_id, 80), sender=world.other)
    own = world.settled(client=world.operator)
    with ape.reverts("reputation: own node"):
        world.reputation.rate_by_signature(own, 80, world.rating(own, 80, world.operator), sender=world.other)


@pytest.fixture
def wallet(world):
    """A wallet contract with a settled session."""
    wallet, session_id = world.wallet()
    world.settle(session_id, signer=world.key)
    wallet.session_id = session_id
    return wallet


@pytest.mark.rule("RL-8", "MOD-5")
@pytest.mark.parametrize("signature", [b"whatever it knows", b"", b"\7" * 65, b"\7" * 500, b"\7" * 1024])
def test_rate_by_signature__approved_by_wallet_contract__is_accepted(world, wallet, signature):
    wallet.answer(1, signature, sender=world.other)
    world.reputation.rate_by_signature(wallet.session_id, 80, signature, sender=world.other)
    assert list(world.reputation.score_of(wallet.session_id)) == [True, 80]


@pytest.mark.rule("MOD-5")
def test_rate_by_signature__when_the_wallet_answers_more_than_a_word__reads_the_first(world, wallet):
    wallet.answer(5, b"", sender=world.other)
    world.reputation.rate_by_signature(wallet.session_id, 80, b"any", sender=world.other)
    assert list(world.reputation.score_of(wallet.session_id)) == [True, 80]


@pytest.mark.rule("RL-8", "MOD-5")
def test_rate_by_signature__of_account_with_delegated_code__takes_its_own_key(world, settled):
    """An EIP-7702 account has code, and signs with its key all the same."""
    world.delegate(world.client, world.deployer.deploy(world.project.Wallet1271))
    refuse(world, settled, world.rating(settled, 80, world.other))
    world.reputation.rate_by_signature(settled, 80, world.rating(settled, 80), sender=world.other)
    assert list(world.reputation.score_of(settled)) == [True, 80]


@pytest.mark.rule("RL-15", "MOD-5")
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 6, 7, 8])
def test_rate_by_signature__when_the_wallet_says_no_or_rubbish__reverts_with_the_ledgers_reason(world, wallet, mode):
    wallet.answer(mode, b"right", sender=world.other)
    refuse(world, wallet.session_id, b"wrong")


@pytest.mark.rule("MOD-5")
def test_rate_by_signature__of_1025_bytes__reverts_before_the_wallet_is_asked(world, wallet):
    wallet.answer(5, b"", sender=world.other)
    with ape.reverts() as refused:
        world.reputation.rate_by_signature(wallet.session_id, 80, b"\7" * 1025, sender=world.other)
    assert "signature" not in refused.value.message


@pytest.mark.rule("RL-8")
def test_rate_by_signature__of_the_wallets_session_key__reverts(world, wallet):
    refuse(world, wallet.session_id, world.rating(wallet.session_id, 80, world.key))


@pytest.mark.rule("RL-8")
def test_rate_by_signature__of_account_with_delegated_code__takes_what_its_code_approves(world, settled):
    world.delegate(world.client, world.deployer.deploy(world.project.Wallet1271))
    data = world.project.Wallet1271.at(world.client.address).answer.encode_input(1, b"by code")
    world.reach(world.client.address, data)
    refuse(world, settled, b"not by code")
    world.reputation.rate_by_signature(settled, 80, b"by code", sender=world.other)
    assert list(world.reputation.score_of(settled)) == [True, 80]


@pytest.mark.rule("RL-4")
def test_rate__by_wallet_contract__counts_as_its_client(world, wallet):
    data = world.reputation.rate.encode_input(wallet.session_id, 80)
    wallet.execute(world.reputation, data, sender=world.other)
    assert list(world.reputation.score_of(wallet.session_id)) == [True, 80]
