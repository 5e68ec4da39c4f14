import ape
import pytest

from tests.contracts.world import DEPOSIT, DURATION, PRICE, event, high_s


@pytest.fixture
def settled(world):
    return world.settled()


def refuse(world, session_id, signature, score=80):
    with ape.reverts("reputation: bad signature"):
        world.reputation.rate_by_signature(session_id, score, signature, sender=world.other)


def test_rate_by_signature__carried_by_anybody__rates_for_the_client(world, settled):
    receipt = world.reputation.rate_by_signature(settled, 80, world.rating(settled, 80), sender=world.other)
    assert event(receipt, "SessionRated")["client"] == world.client
    assert list(world.reputation.score_of(settled)) == [True, 80]
    assert list(world.reputation.ratings(1)) == [80, 1, 0, 300, 24_000]


def test_rate_by_signature__of_wrong_signer__reverts(world, settled):
    for account in (world.operator, world.other):
        refuse(world, settled, world.rating(settled, 80, account))


def test_rate_by_signature__of_the_session_key__reverts(world):
    session_id = world.open(signer=world.key.address)
    world.settle(session_id, signer=world.key)
    refuse(world, session_id, world.rating(session_id, 80, world.key))


def test_rate_by_signature__of_another_score_or_session__reverts(world, settled):
    refuse(world, settled, world.rating(settled, 81))
    refuse(world, settled, world.rating(world.settled(), 80))


@pytest.mark.parametrize(
    "domain", [{"name": "X"}, {"version": "2"}, {"chainId": 1}, {"verifyingContract": "0x" + "11" * 20}]
)
def test_rate_by_signature__of_another_domain__reverts(world, settled, domain):
    refuse(world, settled, world.rating(settled, 80, **domain))


def test_rate_by_signature__for_the_manager_as_verifier__reverts(world, settled):
    refuse(world, settled, world.rating(settled, 80, verifyingContract=world.manager.address))


def test_rate_by_signature__malformed__reverts(world, settled):
    signature = world.rating(settled, 80)
    for bad in (high_s(signature), signature[:64], b"", signature + b"\0", b"\0" * 65, signature[:64] + b"\1"):
        refuse(world, settled, bad)


def test_rate_by_signature__twice__reverts(world, settled):
    signature = world.rating(settled, 80)
    world.reputation.rate_by_signature(settled, 80, signature, sender=world.other)
    with ape.reverts("reputation: already rated"):
        world.reputation.rate_by_signature(settled, 80, signature, sender=world.other)


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
    wallet = world.deployer.deploy(world.project.Wallet1271)
    world.token.mint(wallet, DEPOSIT, sender=world.deployer)
    wallet.execute(world.token, world.token.approve.encode_input(world.manager, DEPOSIT), sender=world.other)
    choice = world.choice(nonce=0)
    data = world.manager.open.encode_input(1, DEPOSIT, PRICE, DURATION, world.key, choice)
    receipt = wallet.execute(world.manager, data, sender=world.other)
    wallet.session_id = bytes(event(receipt, "SessionOpened")["session_id"])
    world.settle(wallet.session_id, signer=world.key)
    return wallet


def test_rate_by_signature__approved_by_wallet_contract__is_accepted(world, wallet):
    wallet.answer(1, b"whatever it knows", sender=world.other)
    world.reputation.rate_by_signature(wallet.session_id, 80, b"whatever it knows", sender=world.other)
    assert list(world.reputation.score_of(wallet.session_id)) == [True, 80]


def test_rate_by_signature__when_the_wallet_answers_more_than_a_word__reads_the_first(world, wallet):
    wallet.answer(5, b"", sender=world.other)
    world.reputation.rate_by_signature(wallet.session_id, 80, b"any", sender=world.other)
    assert list(world.reputation.score_of(wallet.session_id)) == [True, 80]


def test_rate_by_signature__of_account_with_delegated_code__takes_its_own_key(world, settled):
    """An EIP-7702 account has code, and signs with its key all the same."""
    code = world.project.Wallet1271.contract_type.runtime_bytecode.bytecode
    world.chain.provider.make_request("anvil_setCode", [world.client.address, code])
    refuse(world, settled, world.rating(settled, 80, world.other))
    world.reputation.rate_by_signature(settled, 80, world.rating(settled, 80), sender=world.other)
    assert list(world.reputation.score_of(settled)) == [True, 80]


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 6, 7])
def test_rate_by_signature__when_the_wallet_says_no_or_rubbish__reverts_with_the_ledgers_reason(world, wallet, mode):
    wallet.answer(mode, b"right", sender=world.other)
    refuse(world, wallet.session_id, b"wrong")
