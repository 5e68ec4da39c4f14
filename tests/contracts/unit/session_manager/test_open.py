import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import (
    CHALLENGE_PERIOD,
    DEPOSIT,
    DURATION,
    EMPTY,
    MAX_DURATION,
    MAX_SNAPSHOT_AGE,
    MIN_STAKE,
    NO_CAP,
    PRICE,
    STAKE,
    entry,
    event,
    events,
)


@pytest.mark.rule("SM-16")
def test_open__with_defaults__stores_every_field(world):
    before = world.token.balanceOf(world.client)
    session_id = world.open(world.service(1, category="data:second"))
    session = world.manager.sessions(session_id)
    assert (session.client, session.operator, session.signer) == (world.client, world.operator, world.client)
    assert (session.service_id, session.node_id, session.price) == (3, 1, PRICE)
    assert (session.deposit, session.paid, session.calls, session.status) == (DEPOSIT, 0, 0, 1)
    assert (session.expires_at, session.closes_at) == (world.now() + DURATION, 0)
    assert before - world.token.balanceOf(world.client) == DEPOSIT
    assert world.held() == DEPOSIT
    assert world.manager.active_sessions(1) == 1
    assert world.manager.draws(world.client) == 1


@pytest.mark.rule("SM-16")
def test_open__with_every_argument__logs_every_field(world):
    category_id = keccak(text="data:second")
    service_id = world.service(2, world.rival, "data:second")
    choice = world.choice(policy=3, attempt=2, price_cap=150)
    receipt = world.open_receipt(service_id, choice=choice, max_price=120, signer=world.key.address)
    assert event(receipt, "SessionOpened") == {
        "session_id": world.session_id(choice, 3, 2, signer=world.key.address, category_id=category_id),
        "client": world.client.address,
        "service_id": 3,
        "node_id": 2,
        "operator": world.rival.address,
        "signer": world.key.address,
        "price": PRICE,
        "max_price": 120,
        "deposit": DEPOSIT,
        "expires_at": world.now() + DURATION,
        "policy": 3,
        "nonce": 0,
        "attempt": 2,
        "snapshot_block": choice.snapshot_block,
        "snapshot_hash": choice.snapshot_hash,
        "draw_seed": world.draw_seed(choice, category_id=category_id),
        "price_cap": 150,
        "decision": choice.decision,
    }


@pytest.mark.rule("SM-17")
def test_open__without_signer__names_the_client_in_event_and_id(world):
    choice = world.choice()
    opened = event(world.open_receipt(choice=choice), "SessionOpened")
    assert opened["signer"] == world.client
    assert bytes(opened["session_id"]) == world.session_id(choice)


@pytest.mark.rule("SM-12", "SM-17")
def test_open__with_the_client_named_as_signer__is_as_without_one(world):
    choice = world.choice()
    session_id = world.open(choice=choice, signer=world.client.address)
    assert session_id == world.session_id(choice)
    assert world.manager.sessions(session_id).signer == world.client
    world.settle(session_id, 300, 3)
    assert world.manager.sessions(session_id).signer == world.client


@pytest.mark.rule("SM-12")
def test_open__called__returns_the_id_that_is_formed_off_chain(world):
    choice = world.choice()
    world.chain.mine()
    returned = world.manager.open.call(1, DEPOSIT, PRICE, DURATION, EMPTY, choice, sender=world.client)
    assert bytes(returned) == world.session_id(choice)


@pytest.mark.rule("SM-12")
@pytest.mark.parametrize(
    "changes",
    [
        {"policy": 0},
        {"attempt": 1},
        {"price_cap": 5},
        {"decision": b"\1" * 32},
        {"snapshot_block": 1},
    ],
)
def test_open__with_another_term__gives_another_id(world, changes):
    choice = world.choice()
    if "snapshot_block" in changes:
        block = world.chain.blocks[choice.snapshot_block - 1]
        changes = {"snapshot_block": block.number, "snapshot_hash": bytes(block.hash)}
    changed = choice._replace(**changes)
    session_id = world.open(choice=changed)
    assert session_id == world.session_id(changed) != world.session_id(choice)


@pytest.mark.rule("SM-12")
def test_open__at_other_price_or_service__gives_another_id(world):
    choice = world.choice()
    ids = {
        world.session_id(choice),
        world.session_id(choice, price=PRICE + 1),
        world.session_id(choice, 2, 2),
        world.session_id(choice, signer=world.key.address),
    }
    assert len(ids) == 4


@pytest.mark.rule("SM-11")
def test_open__of_a_draw__has_the_seed_of_the_lens(world):
    choice = world.choice()
    seed = event(world.open_receipt(choice=choice), "SessionOpened")["draw_seed"]
    category_id = world.registry.services(1).category_id
    assert seed == world.lens.draw_seed(choice.snapshot_hash, world.client, choice.nonce, category_id)


@pytest.mark.rule("SM-3")
def test_open__of_unknown_or_paused_service__reverts(world):
    world.registry.set_active(1, False, sender=world.operator)
    for service_id in (0, 1, 99):
        with ape.reverts("sessions: service not routable"):
            world.open(service_id)


@pytest.mark.rule("SM-3")
def test_open__of_node_below_minimum_stake__reverts(world):
    world.registry.request_unstake(1, STAKE - MIN_STAKE + 1, sender=world.operator)
    with ape.reverts("sessions: service not routable"):
        world.open()


@pytest.mark.rule("SM-3")
def test_open__of_full_node__is_accepted(world):
    world.registry.request_unstake(1, STAKE - MIN_STAKE, sender=world.operator)
    for expected in (1, 2, 3):
        world.open()
        assert world.manager.active_sessions(1) == expected
    assert world.registry.nodes(1).max_concurrent == 2


@pytest.mark.rule("SM-4")
def test_open__above_max_price__reverts(world):
    with ape.reverts("sessions: price above max_price"):
        world.open(max_price=PRICE - 1)


@pytest.mark.rule("SM-4")
def test_open__when_the_price_rose_since__reverts(world):
    world.registry.set_price(1, PRICE + 1, sender=world.operator)
    with ape.reverts("sessions: price above max_price"):
        world.open()


@pytest.mark.rule("SM-5")
def test_open__with_deposit_below_one_call__reverts(world):
    with ape.reverts("sessions: deposit below price"):
        world.open(deposit=PRICE - 1)
    assert world.manager.sessions(world.open(deposit=PRICE)).deposit == PRICE


@pytest.mark.rule("SM-5")
def test_open__with_deposit_of_129_bits__reverts(world):
    world.token.mint(world.client, 2**129, sender=world.deployer)
    with ape.reverts("sessions: deposit too large"):
        world.open(deposit=2**128)
    assert world.manager.sessions(world.open(deposit=2**128 - 1)).deposit == 2**128 - 1


@pytest.mark.rule("SM-5")
def test_open__of_free_service__needs_no_deposit(world):
    world.registry.set_price(1, 0, sender=world.operator)
    receipt = world.open_receipt(deposit=0, max_price=0)
    assert [log.event_name for log in receipt.events] == ["SessionOpened"]
    world.settle(world.open(deposit=0), 0, 4)
    assert world.held() == 0


@pytest.mark.rule("SM-6")
@pytest.mark.parametrize("duration", [0, MAX_DURATION + 1, 2**256 - 1])
def test_open__with_duration_out_of_range__reverts(world, duration):
    with ape.reverts("sessions: duration out of range"):
        world.open(duration=duration)


@pytest.mark.rule("SM-6")
@pytest.mark.parametrize("duration", [1, MAX_DURATION])
def test_open__with_extreme_duration__is_accepted(world, duration):
    session_id = world.open(duration=duration)
    assert world.manager.sessions(session_id).expires_at == world.now() + duration


@pytest.mark.rule("SM-7")
def test_open__on_snapshot_of_the_oldest_age__is_accepted_one_older_reverts(world):
    choice = world.choice()
    world.chain.mine(MAX_SNAPSHOT_AGE - 1)
    world.open(choice=choice)
    choice = choice._replace(nonce=1)
    with ape.reverts("sessions: snapshot too old"):
        world.open(choice=choice)


@pytest.mark.rule("SM-7")
def test_open__on_snapshot_of_256_blocks__is_the_last_that_the_chain_knows(world):
    manager = world.deployer.deploy(
        world.project.SessionManager, world.token, world.registry, CHALLENGE_PERIOD, MAX_DURATION, 256
    )
    world.token.approve(manager, 2**256 - 1, sender=world.client)
    choice = world.choice(nonce=0)
    world.chain.mine(255)
    terms = (1, DEPOSIT, PRICE, DURATION, EMPTY)
    manager.open(*terms, choice, sender=world.client)
    with ape.reverts("sessions: snapshot too old"):
        manager.open(*terms, choice._replace(nonce=1), sender=world.client)


@pytest.mark.rule("SM-7")
def test_open__on_snapshot_not_in_the_past__reverts(world):
    choice = world.choice()
    for block in (choice.snapshot_block + 1, 2**256 - 1):
        with ape.reverts("sessions: snapshot not in the past"):
            world.open(choice=world.choice(snapshot_block=max(block, world.chain.blocks.height + 1)))


@pytest.mark.rule("SM-7")
def test_open__with_empty_snapshot_hash__reverts(world):
    with ape.reverts("sessions: empty snapshot hash"):
        world.open(choice=world.choice(snapshot_hash=b"\0" * 32))


@pytest.mark.rule("SM-7")
def test_open__with_hash_of_another_block__reverts(world):
    choice = world.choice()
    other = bytes(world.chain.blocks[choice.snapshot_block - 1].hash)
    with ape.reverts("sessions: snapshot not on this chain"):
        world.open(choice=choice._replace(snapshot_hash=other))


@pytest.mark.rule("SM-8")
def test_open__by_several_clients__counts_draws_each(world):
    world.open()
    world.open(client=world.other)
    world.open()
    assert world.manager.draws(world.client) == 2
    assert world.manager.draws(world.other) == 1
    assert world.manager.active_sessions(1) == 3


@pytest.mark.rule("SM-15")
def test_open__with_credit__spends_it_before_the_token(world):
    world.settled(300, 3)
    credit = DEPOSIT - 300
    assert world.manager.credit_of(world.client) == credit
    before = world.token.balanceOf(world.client)
    receipt = world.open_receipt()
    session_id = event(receipt, "SessionOpened")["session_id"]
    assert event(receipt, "CreditSpent") == {
        "account": world.client.address,
        "session_id": session_id,
        "amount": credit,
    }
    assert before - world.token.balanceOf(world.client) == 300
    assert world.manager.credit_of(world.client) == 0


@pytest.mark.rule("SM-15")
def test_open__with_a_credit_of_1__spends_that_too(world):
    world.settled(DEPOSIT - 1, 3)
    assert world.manager.credit_of(world.client) == 1
    before = world.token.balanceOf(world.client)
    receipt = world.open_receipt()
    assert event(receipt, "CreditSpent")["amount"] == 1
    assert before - world.token.balanceOf(world.client) == DEPOSIT - 1
    assert world.manager.credit_of(world.client) == 0


@pytest.mark.rule("SM-15")
def test_open__with_enough_credit__moves_no_token(world):
    world.settled(300, 3)
    receipt = world.open_receipt(deposit=500)
    assert [log.event_name for log in receipt.events] == ["SessionOpened", "CreditSpent"]
    assert event(receipt, "CreditSpent")["amount"] == 500
    assert world.manager.credit_of(world.client) == 200


@pytest.mark.rule("SM-15")
def test_open__with_credit_of_somebody_else__leaves_it(world):
    world.settled(300, 3)
    receipt = world.open_receipt(client=world.other)
    assert events(receipt, "CreditSpent") == []
    assert world.manager.credit_of(world.operator) == 300


@pytest.mark.rule("SM-15")
def test_open__beyond_the_balance__reverts_whole(world):
    with ape.reverts("token: balance too small"):
        world.open(client=world.other, deposit=10**13)
    assert world.manager.draws(world.other) == 0
    assert world.manager.active_sessions(1) == 0


@pytest.mark.rule("SM-13")
def test_open__when_the_id_was_used__reverts(world):
    """No calls reach it, since nonce and attempt of a draw only rise: the latest draw is wiped from storage."""
    choice = world.choice()
    world.open(choice=choice)
    slot = world.slot_of("SessionManager", "latest_draw")
    world.store(world.manager, entry(slot, bytes.fromhex(world.client.address[2:])), 0)
    with ape.reverts("sessions: id already used"):
        world.open(choice=choice)


@pytest.mark.rule("SM-16")
def test_open__with_no_cap__logs_the_largest_word(world):
    assert event(world.open_receipt(), "SessionOpened")["price_cap"] == NO_CAP
