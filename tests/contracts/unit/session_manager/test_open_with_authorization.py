"""A client that pays no gas: it signs an EIP-3009 authorisation whose nonce is the hash of the terms."""

import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import (
    CHALLENGE_PERIOD,
    DEPOSIT,
    DURATION,
    EMPTY,
    NO_CAP,
    PRICE,
    Authorization,
    event,
    events,
    high_s,
)

PLAIN, LYING, FEE, REFUSING, CALLING = range(5)


@pytest.mark.rule("SM-16", "SM-18")
def test_open_with_authorization__carried_by_a_relayer__opens_and_takes_from_the_client(world):
    terms = world.terms(signer=world.key.address)
    before = world.token.balanceOf(world.client), world.token.balanceOf(world.other)
    receipt = world.open_for(terms)
    session_id = world.session_id(terms.choice, signer=world.key.address)
    session = world.manager.sessions(session_id)
    assert (session.client, session.signer, session.operator) == (world.client, world.key, world.operator)
    assert (session.deposit, session.status, session.price) == (DEPOSIT, 1, PRICE)
    assert session.expires_at == receipt.timestamp + DURATION
    after = world.token.balanceOf(world.client), world.token.balanceOf(world.other)
    assert (before[0] - after[0], before[1] - after[1]) == (DEPOSIT, 0)
    assert (world.held(), world.manager.credit_of(world.client)) == (DEPOSIT, 0)
    assert (world.manager.active_sessions(1), world.manager.draws(world.client)) == (1, 1)
    assert event(receipt, "Credited") == {"account": world.client.address, "amount": DEPOSIT}
    assert event(receipt, "CreditSpent") == {
        "account": world.client.address,
        "session_id": session_id,
        "amount": DEPOSIT,
    }
    opened = event(receipt, "SessionOpened")
    assert (bytes(opened["session_id"]), opened["client"]) == (session_id, world.client)
    assert event(receipt, "AuthorizationUsed") == {
        "authorizer": world.client.address,
        "nonce": world.terms_hash(terms),
    }


@pytest.mark.rule("SM-12", "SM-18")
def test_open_with_authorization__called__returns_the_id_that_open_would_give(world):
    terms = world.terms()
    signature = world.authorization(terms)
    world.chain.mine()
    arguments = (*terms, Authorization(), signature)
    returned = world.manager.open_with_authorization.call(*arguments, sender=world.other)
    assert bytes(returned) == world.session_id(terms.choice)


@pytest.mark.rule("SM-18", "SM-36")
def test_open_with_authorization__then_settled__refunds_the_client_and_not_the_relayer(world):
    terms = world.terms()
    receipt = world.open_for(terms)
    world.settle(bytes(event(receipt, "SessionOpened")["session_id"]), 300, 3)
    assert world.manager.credit_of(world.client) == DEPOSIT - 300
    assert world.manager.credit_of(world.other) == 0


CHANGES = {
    "service_id": 2,
    "deposit": DEPOSIT - 1,
    "max_price": PRICE + 1,
    "duration": DURATION + 1,
    "signer": "0x" + "77" * 20,
}
CHOICES = {"policy": 0, "attempt": 1, "price_cap": 5, "decision": b"\1" * 32, "nonce": 1}


@pytest.mark.rule("SM-19")
@pytest.mark.parametrize("field", CHANGES)
def test_open_with_authorization__with_a_term_changed_on_the_way__reverts(world, field):
    terms = world.terms()
    signature = world.authorization(terms)
    with ape.reverts("token: bad signature"):
        world.open_for(terms._replace(**{field: CHANGES[field]}), signature=signature)
    assert (world.held(), world.manager.draws(world.client)) == (0, 0)


@pytest.mark.rule("SM-19")
@pytest.mark.parametrize("field", CHOICES)
def test_open_with_authorization__with_the_choice_changed_on_the_way__reverts(world, field):
    terms = world.terms()
    signature = world.authorization(terms)
    changed = terms.choice._replace(**{field: CHOICES[field]})
    with ape.reverts("token: bad signature"):
        world.open_for(terms._replace(choice=changed), signature=signature)


@pytest.mark.rule("SM-19")
def test_open_with_authorization__with_another_snapshot__reverts(world):
    terms = world.terms()
    signature = world.authorization(terms)
    block = world.chain.blocks[terms.choice.snapshot_block - 1]
    for changes in (
        {"snapshot_block": block.number, "snapshot_hash": bytes(block.hash)},
        {"snapshot_block": block.number},
        {"snapshot_hash": bytes(block.hash)},
    ):
        with ape.reverts("token: bad signature"):
            world.open_for(terms._replace(choice=terms.choice._replace(**changes)), signature=signature)


@pytest.mark.rule("SM-19")
@pytest.mark.parametrize(
    "changes", [{"amount": DEPOSIT + 1}, {"amount": 0}, {"valid_after": 1}, {"valid_before": 2**48 + 1}]
)
def test_open_with_authorization__with_the_authorisation_changed_on_the_way__reverts(world, changes):
    terms = world.terms()
    signature = world.authorization(terms)
    with ape.reverts("token: bad signature"):
        world.open_for(terms, Authorization()._replace(**changes), signature)


@pytest.mark.rule("SM-19")
def test_open_with_authorization__for_somebody_else__reverts(world):
    terms = world.terms()
    for client in (world.operator.address, EMPTY, world.manager.address):
        with ape.reverts("token: bad signature"):
            world.open_for(terms._replace(client=str(client)), signature=world.authorization(terms))


@pytest.mark.rule("SM-19", "MOD-10")
@pytest.mark.parametrize("place", ["chain", "contract"])
def test_open_with_authorization__whose_nonce_is_of_another_chain_or_contract__reverts(world, place):
    """The token's domain is right; what the client agreed to is a session elsewhere."""
    from eth_abi import encode

    from tests.contracts.world import TERMS_TYPE

    terms = world.terms()
    chain_id = world.chain.chain_id + (place == "chain")
    contract = str(world.reputation.address if place == "contract" else world.manager.address)
    types = ["bytes32", "uint256", "address", "address", "uint256", "uint256", "uint256", "uint256", "address"]
    types.append("(uint8,uint256,uint256,uint256,bytes32,uint256,bytes32)")
    nonce = keccak(encode(types, [TERMS_TYPE, chain_id, contract, *terms]))
    with ape.reverts("token: bad signature"):
        world.open_for(terms, signature=world.authorization(terms, nonce=nonce))


@pytest.mark.rule("SM-20")
def test_open_with_authorization__twice__reverts(world):
    terms = world.terms()
    signature = world.authorization(terms)
    world.open_for(terms, signature=signature)
    with ape.reverts("token: authorisation already used"):
        world.open_for(terms, signature=signature)
    assert world.held() == DEPOSIT


@pytest.mark.rule("SM-20")
def test_open_with_authorization__after_the_client_cancelled_it__reverts(world):
    from tests.contracts.world import sign

    terms = world.terms()
    cancel = {"CancelAuthorization": [("authorizer", "address"), ("nonce", "bytes32")]}
    message = {"authorizer": terms.client, "nonce": world.terms_hash(terms)}
    signed = sign(world.client, world.token, cancel, message, name="Test dollar", version="2")
    world.token.cancelAuthorization(world.client, world.terms_hash(terms), signed, sender=world.other)
    with ape.reverts("token: authorisation already used"):
        world.open_for(terms)


@pytest.mark.rule("SM-20")
@pytest.mark.parametrize("receiver", ["other", "registry"])
def test_open_with_authorization__signed_for_another_receiver__reverts(world, receiver):
    terms = world.terms()
    to = str(getattr(world, receiver).address)
    with ape.reverts("token: bad signature"):
        world.open_for(terms, signature=world.authorization(terms, to=to))


@pytest.mark.rule("SM-20")
def test_receive_with_authorization__by_anybody_but_the_manager__reverts(world):
    """Nobody can use the authorisation up at the token and leave the client without a session."""
    terms = world.terms()
    arguments = (world.client, world.manager, *Authorization(), world.terms_hash(terms), world.authorization(terms))
    with ape.reverts("token: not the receiver"):
        world.token.receiveWithAuthorization(*arguments, sender=world.other)


@pytest.mark.rule("SM-20")
def test_transfer_with_authorization__of_the_same_signature__reverts(world):
    terms = world.terms()
    arguments = (world.client, world.manager, *Authorization(), world.terms_hash(terms), world.authorization(terms))
    with ape.reverts("token: bad signature"):
        world.token.transferWithAuthorization(*arguments, sender=world.other)


@pytest.mark.rule("SM-20")
def test_open_with_authorization__at_valid_before__reverts_a_second_before_it_is_accepted(world):
    end = world.now() + 1_000
    authorization = Authorization(valid_before=end)
    terms = world.terms()
    world.at(end)
    with ape.reverts("token: authorisation expired"):
        world.open_for(terms, authorization)


@pytest.mark.rule("SM-20")
def test_open_with_authorization__a_second_before_valid_before__is_accepted(world):
    end = world.now() + 1_000
    terms = world.terms()
    world.at(end - 1)
    world.open_for(terms, Authorization(valid_before=end))
    assert world.held() == DEPOSIT


@pytest.mark.rule("SM-20")
def test_open_with_authorization__at_valid_after__reverts_a_second_later_is_accepted(world):
    start = world.now() + 1_000
    authorization = Authorization(valid_after=start)
    terms = world.terms()
    world.at(start)
    with ape.reverts("token: not yet valid"):
        world.open_for(terms, authorization)
    world.at(start + 1)
    world.open_for(terms, authorization)
    assert world.held() == DEPOSIT


@pytest.mark.rule("SM-20")
def test_open_with_authorization__with_a_malformed_signature__reverts(world):
    terms = world.terms()
    good = world.authorization(terms)
    stranger = world.authorization(terms, signer=world.operator)
    for bad in (b"", good[:64], good + b"\0", high_s(good), b"\1" * 500, stranger):
        with ape.reverts("token: bad signature"):
            world.open_for(terms, signature=bad)


@pytest.mark.rule("SM-20")
@pytest.mark.parametrize("domain", [{"chainId": 1}, {"verifyingContract": "0x" + "11" * 20}])
def test_open_with_authorization__for_another_token_or_chain__reverts(world, domain):
    terms = world.terms()
    with ape.reverts("token: bad signature"):
        world.open_for(terms, signature=world.authorization(terms, **domain))


@pytest.mark.rule("SM-21")
@pytest.mark.parametrize("amount", [0, 1, DEPOSIT - 1])
def test_open_with_authorization__below_the_deposit_without_credit__reverts_whole(world, amount):
    before = world.token.balanceOf(world.client)
    terms, authorization = world.terms(), Authorization(amount)
    with ape.reverts("sessions: authorised less than the deposit"):
        world.open_for(terms, authorization)
    assert (world.token.balanceOf(world.client), world.held()) == (before, 0)
    assert world.token.authorizationState(world.client, world.terms_hash(terms)) is False


@pytest.mark.rule("SM-21")
def test_open_with_authorization__below_the_deposit__takes_the_rest_from_credit(world):
    world.settled(300, 3)
    terms, authorization = world.terms(), Authorization(300)
    receipt = world.open_for(terms, authorization)
    assert event(receipt, "CreditSpent")["amount"] == DEPOSIT
    assert world.manager.credit_of(world.client) == 0


@pytest.mark.rule("SM-21")
def test_open_with_authorization__one_below_what_credit_lacks__reverts(world):
    world.settled(300, 3)
    with ape.reverts("sessions: authorised less than the deposit"):
        world.open_for(world.terms(), Authorization(299))
    assert world.manager.credit_of(world.client) == DEPOSIT - 300


@pytest.mark.rule("SM-21")
def test_open_with_authorization__of_nothing_with_enough_credit__moves_no_token(world):
    world.settled(300, 3)
    before = world.token.balanceOf(world.client)
    receipt = world.open_for(world.terms(deposit=500), Authorization(0))
    assert event(receipt, "CreditSpent")["amount"] == 500
    assert events(receipt, "Credited") == []
    assert world.manager.credit_of(world.client) == 200
    assert world.token.balanceOf(world.client) == before


@pytest.mark.rule("SM-21")
def test_open_with_authorization__above_the_deposit__owes_the_rest_to_the_client(world):
    receipt = world.open_for(world.terms(), Authorization(DEPOSIT + 250))
    assert event(receipt, "Credited")["amount"] == DEPOSIT + 250
    assert event(receipt, "CreditSpent")["amount"] == DEPOSIT
    assert world.manager.credit_of(world.client) == 250
    world.manager.withdraw(world.key, sender=world.client)
    assert (world.token.balanceOf(world.key), world.held()) == (250, DEPOSIT)


@pytest.mark.rule("SM-21")
def test_open_with_authorization__beyond_the_balance__reverts(world):
    amount = world.token.balanceOf(world.client) + 1
    with ape.reverts("token: balance too small"):
        world.open_for(world.terms(), Authorization(amount))


@pytest.mark.rule("SM-21")
def test_open_with_authorization__of_free_service_without_deposit__is_accepted(world):
    world.registry.set_price(1, 0, sender=world.operator)
    receipt = world.open_for(world.terms(deposit=0, max_price=0), Authorization(0))
    assert event(receipt, "SessionOpened")["deposit"] == 0
    assert world.held() == 0


@pytest.mark.rule("SM-22")
@pytest.mark.parametrize("answer", [1, 2, 3])
def test_open_with_authorization__with_a_permissive_fallback__spends_nobodys_credit(world, answer):
    """Nothing was signed, and the token agrees to everything: only its word on the authorisation is left."""
    permissive = world.in_token(world.deployer.deploy(world.project.PermissiveToken, answer))
    permissive.settled(300, 3)
    credit = permissive.manager.credit_of(world.client)
    terms = permissive.terms(deposit=500)
    with ape.reverts():
        permissive.open_for(terms, Authorization(0), b"")
    assert permissive.manager.credit_of(world.client) == credit == DEPOSIT - 300
    assert permissive.manager.active_sessions(1) == 0


@pytest.mark.rule("SM-22")
def test_open_with_authorization__when_the_token_says_so_before__reverts_with_a_sentence(world):
    permissive = world.in_token(world.deployer.deploy(world.project.PermissiveToken, 2))
    permissive.settled(300, 3)
    with ape.reverts("token: authorisation already used"):
        permissive.open_for(permissive.terms(deposit=500), Authorization(0), b"")


@pytest.mark.rule("SM-22")
def test_open_with_authorization__when_the_token_did_not_use_it__reverts_with_a_sentence(world):
    permissive = world.in_token(world.deployer.deploy(world.project.PermissiveToken, 3))
    permissive.settled(300, 3)
    with ape.reverts("token: authorisation not used"):
        permissive.open_for(permissive.terms(deposit=500), Authorization(0), b"")


@pytest.mark.rule("MOD-5")
def test_open_with_authorization__with_a_signature_above_1024_bytes__reverts_before_the_token_is_asked(world):
    permissive = world.in_token(world.deployer.deploy(world.project.PermissiveToken, 3))
    terms = permissive.terms()
    with ape.reverts("token: authorisation not used"):
        permissive.open_for(terms, Authorization(0), b"\7" * 1024)
    with ape.reverts() as refused:
        permissive.open_for(terms, Authorization(0), b"\7" * 1025)
    assert "authorisation" not in refused.value.message


@pytest.mark.rule("SM-22")
def test_open_with_authorization__with_a_token_that_knows_none__reverts(world):
    plain = world.in_token(world.deployer.deploy(world.project.OddToken, PLAIN))
    plain.settled(300, 3)
    with ape.reverts():
        plain.open_for(plain.terms(deposit=500), Authorization(0), b"")
    assert plain.manager.credit_of(plain.client) == DEPOSIT - 300


@pytest.mark.rule("SM-22")
def test_open_with_authorization__with_a_token_that_takes_a_fee__reverts(world):
    fee = world.in_token(world.deployer.deploy(world.project.FeeAuthorizedToken))
    with ape.reverts("token: wrong amount"):
        fee.open_for(fee.terms(), Authorization(), b"")
    assert fee.manager.active_sessions(1) == 0


@pytest.mark.rule("SM-24")
def test_open_with_authorization__of_an_older_draw__reverts(world):
    """The draw's nonce is among the terms: two authorisations of one draw open one session."""
    first, second = world.terms(), world.terms(duration=DURATION + 1)
    signed = world.authorization(second)
    world.open_for(first)
    with ape.reverts("sessions: attempt not later"):
        world.open_for(second, signature=signed)
    world.open(choice=world.choice(nonce=1))
    with ape.reverts("sessions: wrong nonce"):
        world.open_for(second, signature=signed)


@pytest.mark.rule("SM-9", "SM-24")
def test_open_with_authorization__of_a_later_attempt__continues_the_draw_of_an_open(world):
    choice = world.choice()
    world.open(choice=choice)
    terms = world.terms(service_id=2, choice=choice._replace(attempt=1))
    receipt = world.open_for(terms)
    assert event(receipt, "SessionOpened")["draw_seed"] == world.draw_seed(choice)
    assert world.manager.draws(world.client) == 1


@pytest.mark.rule("SM-24")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"service_id": 99}, "sessions: service not routable"),
        ({"max_price": PRICE - 1}, "sessions: price above max_price"),
        ({"deposit": PRICE - 1}, "sessions: deposit below price"),
        ({"deposit": 2**128}, "sessions: deposit too large"),
        ({"duration": 0}, "sessions: duration out of range"),
    ],
)
def test_open_with_authorization__with_terms_that_open_refuses__reverts(world, changes, reason):
    with ape.reverts(reason):
        world.open_for(world.terms(**changes))
    assert world.held() == 0


@pytest.mark.rule("SM-7", "SM-24")
def test_open_with_authorization__on_a_stale_or_foreign_snapshot__reverts(world):
    foreign = world.terms(choice=world.choice(snapshot_hash=b"\7" * 32))
    with ape.reverts("sessions: snapshot not on this chain"):
        world.open_for(foreign)
    terms = world.terms()
    signature = world.authorization(terms)
    world.chain.mine(25)
    with ape.reverts("sessions: snapshot too old"):
        world.open_for(terms, signature=signature)


@pytest.mark.rule("SM-17", "SM-18")
def test_open_with_authorization__with_a_session_key__takes_the_keys_vouchers_and_not_its_authorisation(world):
    terms = world.terms(signer=world.key.address)
    with ape.reverts("token: bad signature"):
        world.open_for(terms, signature=world.authorization(terms, signer=world.key))
    session_id = bytes(event(world.open_for(terms), "SessionOpened")["session_id"])
    world.settle(session_id, 300, 3, signer=world.key)
    assert world.manager.credit_of(world.operator) == 300


@pytest.mark.rule("SM-17", "SM-18")
def test_open_with_authorization__with_the_relayers_own_key_as_signer__takes_that_keys_vouchers_alone(world):
    terms = world.terms(signer=world.other.address)
    session_id = bytes(event(world.open_for(terms, sender=world.other), "SessionOpened")["session_id"])
    assert world.manager.sessions(session_id).signer == world.other
    with ape.reverts("sessions: bad voucher"):
        world.settle(session_id, 300, 3, signer=world.client)
    world.settle(session_id, 300, 3, signer=world.other)
    assert world.manager.credit_of(world.operator) == 300


@pytest.fixture
def wallet(world):
    """A wallet contract with tokens, which has approved nobody."""
    wallet = world.deployer.deploy(world.project.Wallet1271)
    world.token.mint(wallet, DEPOSIT, sender=world.deployer)
    return wallet


def wallet_terms(world, wallet):
    return world.terms(client=wallet, signer=world.key.address)


@pytest.mark.rule("SM-23")
@pytest.mark.parametrize("signature", [b"known to the wallet", b"\7" * 65, b"\7" * 500, b"\7" * 1024, b""])
def test_open_with_authorization__for_a_wallet_contract__opens_what_the_wallet_approves(world, wallet, signature):
    wallet.answer(1, signature, sender=world.other)
    receipt = world.open_for(wallet_terms(world, wallet), signature=signature)
    session_id = bytes(event(receipt, "SessionOpened")["session_id"])
    assert world.manager.sessions(session_id).client == wallet
    assert (world.token.balanceOf(wallet), world.held()) == (0, DEPOSIT)
    world.settle(session_id, 300, 3, signer=world.key)
    assert world.manager.credit_of(wallet) == DEPOSIT - 300


@pytest.mark.rule("SM-23")
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 6, 7, 8])
def test_open_with_authorization__for_a_wallet_that_refuses__reverts(world, wallet, mode):
    wallet.answer(mode, b"right", sender=world.other)
    with ape.reverts("token: bad signature"):
        world.open_for(wallet_terms(world, wallet), signature=b"wrong")
    assert world.token.balanceOf(wallet) == DEPOSIT


@pytest.mark.rule("SM-23")
def test_open_with_authorization__of_account_with_delegated_code__takes_its_own_key(world, wallet):
    world.delegate(world.client, wallet)
    wallet.answer(3, b"", sender=world.other)
    receipt = world.open_for(world.terms())
    assert event(receipt, "SessionOpened")["client"] == world.client
    assert world.held() == DEPOSIT


@pytest.mark.rule("SM-19")
def test_open_with_authorization__with_no_cap__logs_the_largest_word(world):
    assert event(world.open_for(world.terms()), "SessionOpened")["price_cap"] == NO_CAP


@pytest.mark.rule("SM-34", "SM-35")
def test_open_with_authorization__then_expired__refunds_the_client(world):
    receipt = world.open_for(world.terms())
    session_id = bytes(event(receipt, "SessionOpened")["session_id"])
    world.at(receipt.timestamp + DURATION + CHALLENGE_PERIOD)
    world.manager.expire(session_id, sender=world.key)
    assert world.manager.credit_of(world.client) == DEPOSIT
    assert world.manager.active_sessions(1) == 0
