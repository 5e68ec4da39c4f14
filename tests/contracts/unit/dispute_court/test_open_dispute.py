import ape
import pytest

from tests.contracts.world import (
    BOND,
    CHALLENGE_PERIOD,
    DEPOSIT,
    DISPUTE_WINDOW,
    EMPTY,
    MAX_DURATION,
    MIN_STAKE,
    RESOLVE_WINDOW,
    STAKE,
    event,
)

OPEN = 1


@pytest.mark.rule("DC-11", "DC-12")
def test_open_dispute__by_client__stores_takes_the_bond_holds_and_logs(world, session_id):
    before = world.token.balanceOf(world.client)
    assert world.court.open_dispute.call(session_id, 400, "", sender=world.client) == 1
    receipt = world.court.open_dispute(session_id, 400, "ipfs://evidence", sender=world.client)
    dispute = world.court.disputes(1)
    assert (bytes(dispute.session_id), dispute.node_id) == (session_id, 1)
    assert (dispute.client, dispute.operator) == (world.client, world.operator)
    assert (dispute.claim, dispute.opened_at, dispute.status) == (400, receipt.timestamp, OPEN)
    assert (world.court.dispute_count(), world.court.dispute_of(session_id)) == (1, 1)
    assert before - world.token.balanceOf(world.client) == BOND
    assert world.token.balanceOf(world.court) == BOND
    assert world.registry.nodes(1).holds == 1
    assert event(receipt, "DisputeOpened") == {
        "dispute_id": 1,
        "session_id": session_id,
        "node_id": 1,
        "client": world.client.address,
        "claim": 400,
        "bond": BOND,
        "evidence": "ipfs://evidence",
    }


@pytest.mark.rule("DC-11")
def test_open_dispute__of_several_sessions__counts_ids_from_1(world):
    assert [world.dispute(world.settled()) for _ in range(3)] == [1, 2, 3]
    assert world.registry.nodes(1).holds == 3
    assert world.token.balanceOf(world.court) == 3 * BOND


@pytest.mark.rule("DC-11")
def test_open_dispute__without_evidence_or_with_256_bytes__is_accepted_257_reverts(world):
    world.dispute(world.settled(), evidence="")
    world.dispute(world.settled(), evidence="e" * 256)
    session_id = world.settled()
    with ape.reverts():
        world.dispute(session_id, evidence="e" * 257)


@pytest.mark.rule("DC-11")
def test_open_dispute__without_a_bond_to_pay__reverts_whole(world):
    session_id = world.settled()
    world.token.transfer(world.key, world.token.balanceOf(world.client), sender=world.client)
    with ape.reverts("token: balance too small"):
        world.dispute(session_id)
    assert (world.court.dispute_count(), world.court.dispute_of(session_id)) == (0, 0)
    assert world.registry.nodes(1).holds == 0


@pytest.mark.rule("DC-6")
def test_open_dispute__before_settlement__reverts(world):
    session_id = world.open()
    for unsettled in (session_id, b"\1" * 32):
        with ape.reverts("court: session not settled"):
            world.dispute(unsettled)
    world.manager.request_close(session_id, sender=world.client)
    with ape.reverts("court: session not settled"):
        world.dispute(session_id)


@pytest.mark.rule("DC-6")
def test_open_dispute__of_session_that_nobody_settled__is_accepted(world):
    session_id = world.open()
    world.manager.request_close(session_id, sender=world.client)
    world.at(world.now() + CHALLENGE_PERIOD)
    world.manager.finish_close(session_id, sender=world.client)
    assert world.manager.credit_of(world.client) == DEPOSIT
    assert world.dispute(session_id) == 1


@pytest.mark.rule("DC-7")
def test_open_dispute__by_anybody_but_the_client__reverts(world, session_id):
    for account in (world.operator, world.other, world.arbiter):
        with ape.reverts("court: not the client"):
            world.dispute(session_id, client=account)


@pytest.mark.rule("DC-7")
def test_open_dispute__by_the_session_key__reverts(world):
    session_id = world.open(signer=world.key.address)
    world.settle(session_id, signer=world.key)
    with ape.reverts("court: not the client"):
        world.dispute(session_id, client=world.key)


@pytest.mark.rule("DC-7", "DC-20")
def test_open_dispute__by_a_wallet_contract_that_is_the_client__is_accepted(world):
    wallet, session_id = world.wallet()
    world.settle(session_id, signer=world.key)
    world.token.mint(wallet, BOND, sender=world.deployer)
    wallet.execute(world.token, world.token.approve.encode_input(world.court, BOND), sender=world.other)
    wallet.execute(world.court, world.court.open_dispute.encode_input(session_id, 400, ""), sender=world.other)
    dispute = world.court.disputes(world.court.dispute_of(session_id))
    assert (dispute.client, dispute.claim, dispute.status) == (wallet, 400, OPEN)
    world.at(dispute.opened_at + RESOLVE_WINDOW)
    world.court.drop(1, sender=world.other)
    assert world.court.credit_of(wallet) == BOND


@pytest.mark.rule("DC-29")
def test_disputes__of_an_unknown_id__is_empty(world, dispute_id):
    for unknown in (0, dispute_id + 1, 2**256 - 1):
        dispute = world.court.disputes(unknown)
        assert bytes(dispute.session_id) == b"\0" * 32
        assert (dispute.client, dispute.operator) == (EMPTY, EMPTY)
        assert (dispute.node_id, dispute.claim, dispute.opened_at, dispute.status) == (0, 0, 0, 0)
    assert world.court.dispute_of(b"\1" * 32) == 0


@pytest.mark.rule("DC-29")
def test_disputes__after_a_decision__keeps_all_but_the_status(world, session_id, dispute_id):
    before = world.court.disputes(dispute_id)
    world.court.resolve(world.disputed(dispute_id), 400, sender=world.arbiter)
    after = world.court.disputes(dispute_id)
    assert list(after)[:-1] == list(before)[:-1]
    assert (before.status, after.status) == (OPEN, 2)


@pytest.mark.rule("DC-8")
def test_open_dispute__in_the_last_second_of_the_window__is_accepted(world, session_id):
    world.at(world.manager.sessions(session_id).settled_at + DISPUTE_WINDOW - 1)
    assert world.dispute(session_id) == 1


@pytest.mark.rule("DC-8")
def test_open_dispute__at_the_end_of_the_window__reverts(world, session_id):
    world.at(world.manager.sessions(session_id).settled_at + DISPUTE_WINDOW)
    with ape.reverts("court: dispute window is over"):
        world.dispute(session_id)


@pytest.mark.rule("DC-5", "DC-8", "DC-18")
def test_open_dispute__at_the_last_moment_of_the_longest_session__still_finds_the_stake(world):
    """The shortest unbonding allowed, asked for right before the open: a client that ends in time is not late."""
    windows = MAX_DURATION + CHALLENGE_PERIOD + DISPUTE_WINDOW
    short = world.in_token(world.token, unbonding_period=windows + 1)
    short.registry.request_unstake(1, STAKE - MIN_STAKE, sender=short.operator)
    session_id = short.open(duration=MAX_DURATION)
    short.at(short.manager.sessions(session_id).expires_at + CHALLENGE_PERIOD)
    short.manager.expire(session_id, sender=short.client)
    short.at(short.manager.sessions(session_id).settled_at + DISPUTE_WINDOW - 1)
    dispute_id = short.dispute(session_id, STAKE)
    short.at(short.registry.nodes(1).release_at + 10)
    with ape.reverts("registry: held by a dispute"):
        short.registry.withdraw_stake(1, sender=short.operator)
    short.court.resolve(short.disputed(dispute_id), STAKE, sender=short.arbiter)
    assert short.court.credit_of(short.client) == BOND + STAKE


@pytest.mark.rule("DC-9")
def test_open_dispute__twice__reverts_even_after_the_first_was_decided(world, session_id, dispute_id):
    with ape.reverts("court: already disputed"):
        world.dispute(session_id)
    world.court.resolve(world.disputed(dispute_id), 0, sender=world.arbiter)
    with ape.reverts("court: already disputed"):
        world.dispute(session_id)


@pytest.mark.rule("DC-10")
@pytest.mark.parametrize("claim", [0, 2**128, 2**256 - 1])
def test_open_dispute__with_claim_out_of_range__reverts(world, session_id, claim):
    with ape.reverts("court: claim out of range"):
        world.dispute(session_id, claim)


@pytest.mark.rule("DC-10")
def test_open_dispute__with_extreme_claims__is_accepted(world):
    for claim in (1, 2**128 - 1):
        dispute_id = world.dispute(world.settled(), claim)
        assert world.court.disputes(dispute_id).claim == claim


@pytest.mark.rule("DC-12", "NR-18")
def test_withdraw_stake__while_disputes_are_open__waits_for_the_last_to_end(world, session_id, dispute_id):
    second = world.dispute(world.settled())
    world.registry.request_unstake(1, STAKE, sender=world.operator)
    world.court.resolve(world.disputed(dispute_id), 0, sender=world.arbiter)
    world.at(world.registry.nodes(1).release_at)
    with ape.reverts("registry: held by a dispute"):
        world.registry.withdraw_stake(1, sender=world.operator)
    world.court.drop(second, sender=world.other)
    before = world.token.balanceOf(world.operator)
    world.registry.withdraw_stake(1, sender=world.operator)
    assert world.token.balanceOf(world.operator) - before == STAKE


@pytest.mark.rule("DC-12")
def test_open_dispute__of_one_node__holds_no_other(world, dispute_id):
    assert [world.registry.nodes(node_id).holds for node_id in (1, 2)] == [1, 0]
