import ape
import pytest

from tests.contracts.world import (
    CHALLENGE_PERIOD,
    DEPOSIT,
    DURATION,
    EMPTY,
    PRICE,
    event,
    events,
    high_s,
)


@pytest.mark.rule("SM-27", "SM-36")
def test_settle__by_voucher__stores_credits_and_logs(world, session_id):
    receipt = world.settle(session_id, 300, 3)
    session = world.manager.sessions(session_id)
    assert (session.status, session.paid, session.deposit, session.calls) == (3, 300, 0, 3)
    assert (session.client, session.operator, session.price) == (world.client, world.operator, PRICE)
    assert world.manager.active_sessions(1) == 0
    assert world.manager.credit_of(world.operator) == 300
    assert world.manager.credit_of(world.client) == DEPOSIT - 300
    assert world.held() == DEPOSIT
    assert event(receipt, "SessionSettled") == {
        "session_id": session_id,
        "node_id": 1,
        "client": world.client.address,
        "paid": 300,
        "refunded": DEPOSIT - 300,
        "calls": 3,
    }
    assert events(receipt, "Credited") == [
        {"account": world.operator.address, "amount": 300},
        {"account": world.client.address, "amount": DEPOSIT - 300},
    ]


@pytest.mark.rule("SM-41")
def test_settlement_of__settled_session__is_what_ledgers_read(world):
    session_id = world.open(world.service(1, category="data:second"))
    assert world.manager.settlement_of(session_id).settled is False
    world.settle(session_id, 300, 3)
    settlement = world.manager.settlement_of(session_id)
    assert (settlement.client, settlement.operator) == (world.client, world.operator)
    assert (settlement.service_id, settlement.node_id) == (3, 1)
    assert (settlement.settled, settlement.paid, settlement.calls) == (True, 300, 3)


@pytest.mark.rule("SM-35", "SM-36")
def test_settle__of_a_second_service__lowers_and_logs_its_node(world, session_id):
    second = world.open(world.service(1, category="data:second"))
    assert world.manager.active_sessions(1) == 2
    assert event(world.settle(second, 300, 3), "SessionSettled")["node_id"] == 1
    assert [world.manager.active_sessions(node_id) for node_id in (1, 3)] == [1, 0]


@pytest.mark.rule("SM-36", "SM-41")
def test_settle__of_a_session__stores_when_it_was(world, session_id):
    assert world.manager.sessions(session_id).settled_at == 0
    assert world.manager.settlement_of(session_id).settled_at == 0
    receipt = world.settle(session_id, 300, 3)
    assert world.manager.sessions(session_id).settled_at == receipt.timestamp
    assert world.manager.settlement_of(session_id).settled_at == receipt.timestamp


@pytest.mark.rule("SM-41")
def test_settlement_of__unknown_session__is_empty(world):
    settlement = world.manager.settlement_of(b"\7" * 32)
    assert (settlement.settled, settlement.paid, settlement.node_id) == (False, 0, 0)
    assert world.manager.sessions(b"\7" * 32).status == 0


@pytest.mark.rule("SM-36")
def test_settle__of_the_whole_deposit__refunds_nothing(world, session_id):
    receipt = world.settle(session_id, DEPOSIT, 10)
    assert events(receipt, "Credited") == [{"account": world.operator.address, "amount": DEPOSIT}]
    assert world.manager.credit_of(world.client) == 0


@pytest.mark.rule("SM-30")
def test_settle__at_zero__needs_no_signature(world, session_id):
    receipt = world.manager.settle(session_id, 0, 0, b"", sender=world.operator)
    assert event(receipt, "SessionSettled")["refunded"] == DEPOSIT
    assert events(receipt, "Credited") == [{"account": world.client.address, "amount": DEPOSIT}]
    assert world.manager.active_sessions(1) == 0


@pytest.mark.rule("SM-30")
def test_settle__at_zero_with_calls__needs_a_voucher(world, session_id):
    with ape.reverts("sessions: bad voucher"):
        world.manager.settle(session_id, 0, 3, b"", sender=world.operator)
    world.settle(session_id, 0, 3)
    assert world.manager.sessions(session_id).calls == 3


@pytest.mark.rule("SM-30")
def test_settle__at_zero_with_a_bad_signature__reverts(world, session_id):
    with ape.reverts("sessions: bad voucher"):
        world.manager.settle(session_id, 0, 0, b"\1", sender=world.operator)


@pytest.mark.rule("SM-17", "SM-29")
def test_settle__by_voucher_of_the_session_key__is_accepted_and_the_clients_is_not(world):
    session_id = world.open(signer=world.key.address)
    with ape.reverts("sessions: bad voucher"):
        world.settle(session_id, 300, 3)
    world.settle(session_id, 300, 3, signer=world.key)
    assert world.manager.sessions(session_id).signer == world.key


@pytest.mark.rule("SM-28")
def test_settle__above_the_deposit__reverts_and_never_takes_less(world, session_id):
    with ape.reverts("sessions: voucher above deposit"):
        world.settle(session_id, DEPOSIT + 1, 11)
    assert world.manager.sessions(session_id).status == 1


@pytest.mark.rule("SM-31")
def test_settle__with_calls_of_33_bits__reverts(world, session_id):
    with ape.reverts("sessions: too many calls"):
        world.settle(session_id, 300, 2**32)
    world.settle(session_id, 300, 2**32 - 1)
    assert world.manager.sessions(session_id).calls == 2**32 - 1


@pytest.mark.rule("SM-35")
def test_settle__twice__reverts(world, session_id):
    world.settle(session_id)
    with ape.reverts("sessions: already settled"):
        world.settle(session_id)
    assert world.manager.credit_of(world.operator) == 300


@pytest.mark.rule("SM-27")
def test_settle__by_anybody_else__reverts(world, session_id):
    for account in (world.client, world.rival, world.other):
        with ape.reverts("sessions: not the operator"):
            world.settle(session_id, operator=account)


@pytest.mark.rule("SM-27")
def test_settle__of_unknown_session__reverts(world):
    with ape.reverts("sessions: not the operator"):
        world.settle(b"\1" * 32)


@pytest.mark.rule("SM-27")
def test_settle__while_closing__is_accepted_even_behind_the_period(world, session_id):
    world.manager.request_close(session_id, sender=world.client)
    world.at(world.now() + CHALLENGE_PERIOD + 5)
    world.settle(session_id)
    assert world.manager.credit_of(world.operator) == 300


@pytest.mark.rule("SM-27")
def test_settle__behind_expiry__is_accepted_until_somebody_ended_it(world, session_id):
    world.at(world.now() + DURATION + CHALLENGE_PERIOD + 5)
    world.settle(session_id)
    assert world.manager.active_sessions(1) == 0


def refuse(world, session_id, signature, amount=300, calls=3):
    with ape.reverts("sessions: bad voucher"):
        world.manager.settle(session_id, amount, calls, signature, sender=world.operator)
    assert world.manager.sessions(session_id).status == 1


@pytest.mark.rule("SM-29")
def test_settle__by_voucher_of_a_wrong_signer__reverts(world, session_id):
    for account in (world.other, world.operator):
        refuse(world, session_id, world.voucher(session_id, 300, 3, account))


@pytest.mark.rule("SM-29")
@pytest.mark.parametrize(("amount", "calls"), [(299, 3), (301, 3), (300, 2), (300, 4)])
def test_settle__by_voucher_of_another_amount_or_calls__reverts(world, session_id, amount, calls):
    refuse(world, session_id, world.voucher(session_id, amount, calls))


@pytest.mark.rule("SM-29")
def test_settle__by_voucher_of_another_session__reverts(world, session_id):
    refuse(world, session_id, world.voucher(world.open(), 300, 3))


@pytest.mark.rule("SM-29")
@pytest.mark.parametrize(
    "domain",
    [
        {"name": "Counterfeit"},
        {"version": "2"},
        {"chainId": 1},
        {"verifyingContract": "0x" + "11" * 20},
    ],
)
def test_settle__by_voucher_of_another_domain__reverts(world, session_id, domain):
    refuse(world, session_id, world.voucher(session_id, 300, 3, **domain))


@pytest.mark.rule("SM-29")
def test_settle__by_voucher_with_high_s__reverts(world, session_id):
    refuse(world, session_id, high_s(world.voucher(session_id, 300, 3)))


@pytest.mark.rule("SM-29")
def test_settle__by_voucher_of_64_bytes_or_other_malformed__reverts(world, session_id):
    voucher = world.voucher(session_id, 300, 3)
    compact = voucher[:32] + (int.from_bytes(voucher[32:64], "big") | (voucher[64] - 27) << 255).to_bytes(32, "big")
    for signature in (compact, voucher[:64], voucher[:1], b"", b"\0" * 65):
        refuse(world, session_id, signature)


@pytest.mark.rule("SM-29")
def test_settle__by_voucher_with_odd_recovery_byte__reverts(world, session_id):
    voucher = world.voucher(session_id, 300, 3)
    for v in (0, 1, 26, 29, 255):
        refuse(world, session_id, voucher[:64] + bytes([v]))


@pytest.mark.rule("SM-29")
def test_settle__by_voucher_of_66_bytes__reverts(world, session_id):
    with ape.reverts():
        world.manager.settle(session_id, 300, 3, world.voucher(session_id, 300, 3) + b"\0", sender=world.operator)


@pytest.mark.rule("SM-17", "SM-29")
def test_settle__of_contract_client_with_a_key__takes_the_keys_voucher(world):
    wallet, session_id = world.wallet()
    world.settle(session_id, 300, 3, signer=world.key)
    assert world.manager.credit_of(wallet) == DEPOSIT - 300


@pytest.mark.rule("SM-29")
def test_settle__of_contract_client_without_key__never_asks_the_wallet(world):
    wallet, session_id = world.wallet(signer=EMPTY)
    assert world.manager.sessions(session_id).signer == wallet
    signature = world.voucher(session_id, 300, 3)
    wallet.answer(1, signature, sender=world.other)
    refuse(world, session_id, signature)
    refuse(world, session_id, b"\0" * 65)
    world.settle(session_id, 0, 0)
    assert world.manager.credit_of(wallet) == DEPOSIT


@pytest.mark.rule("SM-44")
def test_domain_separator__of_each_contract__is_eip712(world):
    from eth_abi import encode
    from eth_utils import keccak

    kind = keccak(text="EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
    for contract in (world.manager, world.reputation, world.experience):
        words = [kind, keccak(text="Counterfoil"), keccak(text="1"), world.chain.chain_id, contract.address]
        expected = keccak(encode(["bytes32", "bytes32", "bytes32", "uint256", "address"], words))
        assert bytes(contract.domain_separator()) == expected


@pytest.mark.rule("SM-29")
def test_settle__of_client_with_delegated_code__takes_its_own_keys_voucher_alone(world, session_id):
    wallet = world.deployer.deploy(world.project.Wallet1271)
    world.delegate(world.client, wallet)
    data = wallet.answer.encode_input(1, b"\7" * 65)
    world.reach(world.client.address, data)
    refuse(world, session_id, b"\7" * 65)
    world.settle(session_id, 300, 3)
    assert world.manager.credit_of(world.operator) == 300


@pytest.mark.rule("SM-41", "MOD-1")
def test_sessions__with_every_field_at_its_largest__reads_each_back(world):
    world.token.mint(world.client, 2**128, sender=world.deployer)
    world.registry.set_price(1, 2**96 - 1, sender=world.operator)
    session_id = world.open(deposit=2**128 - 1, max_price=2**96 - 1, signer=world.key.address)
    held = world.manager.sessions(session_id)
    assert (held.client, held.operator, held.signer) == (world.client, world.operator, world.key)
    assert (held.deposit, held.price, held.status, held.paid) == (2**128 - 1, 2**96 - 1, 1, 0)
    world.manager.request_close(session_id, sender=world.client)
    closing = world.manager.sessions(session_id)
    assert (closing.closes_at, closing.expires_at) == (world.now() + CHALLENGE_PERIOD, held.expires_at)
    world.settle(session_id, 2**128 - 1, 2**32 - 1, signer=world.key)
    ended = world.manager.sessions(session_id)
    assert (ended.paid, ended.calls, ended.deposit, ended.status) == (2**128 - 1, 2**32 - 1, 0, 3)
    assert (ended.client, ended.operator, ended.signer) == (world.client, world.operator, world.key)
    assert (ended.price, ended.expires_at, ended.settled_at) == (2**96 - 1, held.expires_at, world.now())
    assert (ended.service_id, ended.node_id, ended.closes_at) == (1, 1, 0)
