import pytest

from counterfoil.chain.contracts import (
    NOBODY,
    Choice,
    ExperienceLedger,
    ExperienceRecord,
    Opening,
    Token,
    address,
    word,
)
from counterfoil.chain.errors import ChainError, RevertedError
from counterfoil.chain.sender import estimate, events
from counterfoil.chain.typed_data import Terms, experience, rating, session_id, voucher
from counterfoil.receipts import digest
from counterfoil.routing.lottery import NO_CAP, Candidate, category_id, rank
from tests.support.chain import CATEGORY, MIN_STAKE, STAKE_PER_SLOT

ID = category_id(CATEGORY)


def opened(world, client="alice"):
    return world.route(client)


def operator_of(world, session):
    return f"operator{world.manager.session(session).node_id - 1}"


def test_registry__after_registrations__reads_its_state_at_any_block(world):
    before = world.chain.head().number
    service = world.node("newcomer", MIN_STAKE * 4, 77, "mcp:web-search")
    node_id = world.registry.service(service).node_id

    node = world.registry.node(node_id)
    assert (node.operator, node.stake, node.endpoint) == (
        world.by("newcomer").address,
        MIN_STAKE * 4,
        "http://newcomer.test",
    )
    assert node.max_concurrent == MIN_STAKE * 4 // STAKE_PER_SLOT
    found = world.registry.service(service)
    assert (found.price, found.active, found.category_id) == (77, True, "0x" + category_id("mcp:web-search").hex())
    assert world.registry.is_routable(service)
    assert world.registry.service_count() == world.registry.service_count(at=before) + 1
    assert world.registry.node_count() == world.registry.node_count(at=before) + 1
    assert world.registry.category_service(category_id("mcp:web-search"), 0) == service


def test_registry__parameters__are_those_of_its_deployment(world):
    found = world.registry.parameters()

    assert (found.stake_token, found.court) == (world.token.address, NOBODY)
    assert (found.min_stake, found.stake_per_slot, found.unbonding_period) == (MIN_STAKE, STAKE_PER_SLOT, 100)


def test_estimate__of_a_write__asks_the_chain_and_sends_nothing(world):
    service = world.node("asker", MIN_STAKE, 50, "a:b")
    before = world.chain.head().number
    write = world.registry.set_price(service, 51)

    assert 21_000 < estimate(write, world.by("asker").address) < 100_000
    with pytest.raises(RevertedError) as refused:
        estimate(write, NOBODY)
    assert refused.value.reason == "registry: not the operator"
    assert world.chain.head().number == before


def test_registry__writes__change_what_its_views_say(world):
    name = "mover"
    service = world.node(name, MIN_STAKE * 2, 50, "a:b")
    node_id = world.registry.service(service).node_id
    registry, sender = world.registry, world.by(name)
    for write in (
        registry.set_endpoint(node_id, "http://elsewhere.test"),
        registry.set_capability(node_id, "routing.v1", True),
        registry.add_stake(node_id, MIN_STAKE),
        registry.request_unstake(node_id, MIN_STAKE // 2),
        registry.set_price(service, 51),
        registry.set_metadata(service, "ipfs://new"),
        registry.set_active(service, False),
        registry.transfer_node(node_id, world.by("heir").address),
    ):
        sender.send(write)
    world.by("heir").send(registry.accept_node(node_id))
    node, listing = registry.node(node_id), registry.service(service)

    assert (node.endpoint, node.capability_count) == ("http://elsewhere.test", 1)
    assert (node.stake, node.unbonding) == (MIN_STAKE * 5 // 2, MIN_STAKE // 2)
    assert node.operator == world.by("heir").address
    assert (listing.price, listing.metadata_uri, listing.active) == (51, "ipfs://new", False)
    with pytest.raises(RevertedError) as refused:
        world.by("heir").send(registry.withdraw_stake(node_id))
    assert refused.value.reason.startswith("registry: ")


def test_lens__of_a_market__gives_what_python_gives(world):
    opened(world)
    block = world.chain.head().number
    size = world.registry.category_size(ID, block)
    candidates = world.lens.candidates(ID, size, block)
    seed = world.lens.draw_seed("0x" + "11" * 32, world.by("alice").address, 3, ID)
    for cap in (None, 100, 1):
        ranking = rank(candidates, seed, cap)
        weighed = world.lens.weights(ID, cap, block)

        assert weighed.terms == ranking.terms
        assert weighed.dropped == {service_id: drop.rule for service_id, drop in ranking.dropped.items()}
        assert weighed.relaxed is ranking.relaxed
        assert world.lens.order(ID, cap, seed, 16, block) == ranking.order
    assert candidates[0] == Candidate(
        1, 100, MIN_STAKE, 0, 0, world.manager.active_sessions(1), MIN_STAKE // STAKE_PER_SLOT
    )


def test_session__from_open_to_rating__is_what_the_contracts_say(world):
    receipt = world.decide("alice")
    session = world.open("alice", receipt)
    state = world.manager.session(session)
    client, operator = world.by("alice"), operator_of(world, session)

    assert (state.client, state.service_id, state.status) == (client.address, receipt.choice, 1)
    assert world.manager.draws(client.address) == receipt.request.nonce + 1
    terms = Terms(
        client=client.address,
        service_id=state.service_id,
        node_id=state.node_id,
        price=state.price,
        signer=client.address,
        draw_seed=receipt.draw_seed,
        policy=1,
        nonce=receipt.request.nonce,
        attempt=0,
        snapshot_block=receipt.snapshot_block,
        price_cap=NO_CAP,
        decision=digest(receipt),
    )
    assert session_id(31337, world.manager.address, terms) == session

    client.send(world.manager.top_up(session, 5))
    world.settle(session, "alice", operator, calls=3)
    settled = world.manager.session(session)
    assert (settled.status, settled.paid, settled.calls) == (3, state.price * 3, 3)
    assert world.manager.credit_of(world.by(operator).address) >= state.price * 3

    signed = rating(31337, world.reputation.address, session, 88).sign(client.account)
    world.by("relayer").send(world.reputation.rate_by_signature(session, 88, signed))
    assert world.reputation.score_of(session) == 88
    assert world.reputation.ratings(state.node_id).rating_count >= 1

    before = world.token.balance_of(client.address)
    client.send(world.manager.withdraw(client.address))
    assert world.token.balance_of(client.address) == before + state.deposit + 5 - settled.paid
    with pytest.raises(RevertedError) as refused:
        client.send(world.reputation.rate(session, 88))
    assert refused.value.reason.startswith("reputation: ")
    assert str(refused.value) == f"ReputationLedger.rate was refused: {refused.value.reason}."


def test_experience__signed_by_the_client__is_attested(world):
    ledger = ExperienceLedger(world.chain)
    session = opened(world)
    world.settle(session, "alice", operator_of(world, session), calls=2)
    records = [
        ExperienceRecord(session, tool, "data:crypto", "bitcoin price", True, 1, 0, 255, 800, 50, "", "ok ✓")
        for tool in ("quote", "candle")
    ]
    signatures = [experience(31337, ledger.address, one).sign(world.by("alice").account) for one in records]
    first = ledger.attest(records[0], signatures[0])
    (logged,) = events(first, world.by("relayer").send(first), "ExperienceAttested")

    assert (logged["tool"], logged["note"], logged["latency_ms"]) == ("quote", "ok ✓", 800)
    second = ledger.attest_many(records[1:], signatures[1:])
    assert len(events(second, world.by("relayer").send(second), "ExperienceAttested")) == 1


def test_closing__without_a_voucher__goes_the_other_ways(world):
    session = opened(world)
    world.by("alice").send(world.manager.request_close(session))
    assert world.manager.session(session).status == 2
    world.rpc("evm_increaseTime", 4000)
    world.rpc("evm_mine")
    world.by("alice").send(world.manager.finish_close(session))
    other = opened(world)
    world.rpc("evm_increaseTime", 4000)
    world.rpc("evm_mine")
    world.by("anyone").send(world.manager.expire(other))

    assert (world.manager.session(session).paid, world.manager.session(other).status) == (0, 3)


def test_open__with_an_old_or_unknown_snapshot__gives_the_contracts_reason(world):
    choice = Choice(1, world.manager.draws(world.by("alice").address), 0, 1, "0x" + "12" * 32, None, "0x" + "00" * 32)
    with pytest.raises(RevertedError) as refused:
        world.by("alice").send(world.manager.open(Opening(1, 1000, 100, 60, choice)))

    assert refused.value.reason == "sessions: snapshot not on this chain"


def test_signer_of__any_signature__is_who_signed_or_nobody(world):
    account = world.by("alice").account
    data = voucher(31337, world.manager.address, "0x" + "01" * 32, 5, 1)
    signature = data.sign(account)

    assert data.signer_of(signature) == world.by("alice").address
    assert voucher(1, world.manager.address, "0x" + "01" * 32, 5, 1).signer_of(signature) != world.by("alice").address
    assert data.signer_of(b"") is None
    assert data.signer_of(b"\xff" * 65) is None


@pytest.mark.parametrize("text", ["", "0x12", "12" * 32, "0x" + "zz" * 32])
def test_word__with_no_id__says_what_one_is(text):
    with pytest.raises(ChainError, match="is no 32-byte id: give 0x and 64 hexadecimal digits"):
        word(text)


@pytest.mark.parametrize("text", ["", "0x12", "alice.eth"])
def test_address__with_no_address__says_what_one_is(text):
    with pytest.raises(ChainError, match="is no address: give 0x and 40 hexadecimal digits"):
        address(text)


def test_token__approvals__are_read_back(world):
    token = Token(world.chain, world.token.address)
    world.by("alice").send(token.approve(world.by("relayer").address, 5))

    assert token.allowance(world.by("alice").address, world.by("relayer").address) == 5
    assert token.balance_of(NOBODY) == 0
