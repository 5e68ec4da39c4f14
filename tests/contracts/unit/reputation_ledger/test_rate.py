import ape
import pytest

from tests.contracts.world import event


@pytest.mark.rule("RL-4", "RL-9", "RL-12")
def test_rate__by_client__stores_counts_and_logs(world):
    session_id = world.settled(300, 3)
    receipt = world.reputation.rate(session_id, 80, sender=world.client)
    assert list(world.reputation.score_of(session_id)) == [True, 80]
    assert list(world.reputation.ratings(1)) == [80, 1, 0, 300, 80 * 300]
    assert event(receipt, "SessionRated") == {
        "session_id": session_id,
        "node_id": 1,
        "client": world.client.address,
        "service_id": 1,
        "score": 80,
        "paid": 300,
        "counted": True,
    }


@pytest.mark.rule("RL-9", "RL-11")
def test_rate__of_several_sessions__sums_by_node_and_weighs_by_what_was_paid(world):
    for amount, score in ((300, 80), (200, 50), (1_000, 100)):
        world.reputation.rate(world.settled(amount, 3), score, sender=world.client)
    world.reputation.rate(world.settled(100, 1, service_id=2), 7, sender=world.client)
    assert list(world.reputation.ratings(1)) == [230, 3, 0, 1_500, 300 * 80 + 200 * 50 + 1_000 * 100]
    assert list(world.reputation.ratings(2)) == [7, 1, 0, 100, 700]


@pytest.mark.rule("RL-5")
@pytest.mark.parametrize("score", [0, 100])
def test_rate__at_the_ends_of_the_scale__is_accepted(world, score):
    session_id = world.settled()
    world.reputation.rate(session_id, score, sender=world.client)
    assert list(world.reputation.score_of(session_id)) == [True, score]


@pytest.mark.rule("RL-5")
@pytest.mark.parametrize("score", [101, 255])
def test_rate__above_100__reverts(world, score):
    with ape.reverts("reputation: score above 100"):
        world.reputation.rate(world.settled(), score, sender=world.client)


@pytest.mark.rule("RL-3")
def test_rate__twice__reverts_even_after_a_score_of_0(world):
    session_id = world.settled()
    world.reputation.rate(session_id, 0, sender=world.client)
    with ape.reverts("reputation: already rated"):
        world.reputation.rate(session_id, 100, sender=world.client)
    assert list(world.reputation.ratings(1)) == [0, 1, 0, 300, 0]


@pytest.mark.rule("RL-2")
def test_rate__before_settlement__reverts(world, session_id):
    with ape.reverts("reputation: session not settled"):
        world.reputation.rate(session_id, 80, sender=world.client)
    world.manager.request_close(session_id, sender=world.client)
    with ape.reverts("reputation: session not settled"):
        world.reputation.rate(session_id, 80, sender=world.client)


@pytest.mark.rule("RL-2", "RL-13")
def test_rate__of_unknown_session__reverts(world):
    with ape.reverts("reputation: session not settled"):
        world.reputation.rate(b"\1" * 32, 80, sender=world.client)
    assert list(world.reputation.score_of(b"\1" * 32)) == [False, 0]


@pytest.mark.rule("RL-4")
def test_rate__by_anybody_else__reverts(world):
    session_id = world.settled()
    for account in (world.operator, world.other):
        with ape.reverts("reputation: not the client"):
            world.reputation.rate(session_id, 80, sender=account)


@pytest.mark.rule("RL-6")
def test_rate__of_own_node__reverts(world):
    session_id = world.settled(client=world.operator)
    with ape.reverts("reputation: own node"):
        world.reputation.rate(session_id, 100, sender=world.operator)


@pytest.mark.rule("RL-6")
def test_rate__of_own_node_given_away_meanwhile__reverts(world):
    session_id = world.settled(client=world.operator)
    world.registry.transfer_node(1, world.other, sender=world.operator)
    world.registry.accept_node(1, sender=world.other)
    with ape.reverts("reputation: own node"):
        world.reputation.rate(session_id, 100, sender=world.operator)


@pytest.mark.rule("RL-6")
def test_rate__of_another_operators_node__is_accepted(world):
    session_id = world.settled(service_id=2, client=world.operator)
    world.reputation.rate(session_id, 100, sender=world.operator)
    assert list(world.reputation.ratings(2)) == [100, 1, 0, 300, 30_000]
