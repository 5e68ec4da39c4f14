"""Which nonce, attempt and terms start or continue a draw (design section 3)."""

import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import DEPOSIT, DURATION, EMPTY, PRICE, event, refused_without_a_reason


@pytest.fixture
def first(world):
    """The first attempt of a draw, opened."""
    choice = world.choice(price_cap=500)
    world.open(choice=choice)
    return choice


@pytest.mark.rule("SM-9")
def test_open__with_a_later_attempt__continues_the_draw_with_the_same_seed(world, first):
    receipt = world.open_receipt(2, choice=first._replace(attempt=1))
    opened = event(receipt, "SessionOpened")
    assert (opened["attempt"], opened["nonce"], opened["service_id"]) == (1, 0, 2)
    assert opened["draw_seed"] == world.draw_seed(first)
    assert world.manager.draws(world.client) == 1


@pytest.mark.rule("SM-9")
def test_open__with_attempts_that_skip__is_accepted_in_rising_order(world, first):
    for attempt in (2, 5, 2**32 - 1):
        world.open(2, choice=first._replace(attempt=attempt))
    assert world.manager.draws(world.client) == 1


@pytest.mark.rule("SM-9")
def test_open__first_with_a_late_attempt__starts_the_draw(world):
    choice = world.choice(attempt=3)
    world.open(choice=choice)
    with ape.reverts("sessions: attempt not later"):
        world.open(2, choice=choice._replace(attempt=2))
    world.open(2, choice=choice._replace(attempt=4))


@pytest.mark.rule("SM-9")
@pytest.mark.parametrize("attempt", [0, 1])
def test_open__with_an_attempt_not_later__reverts(world, first, attempt):
    world.open(2, choice=first._replace(attempt=1))
    with ape.reverts("sessions: attempt not later"):
        world.open(2, choice=first._replace(attempt=attempt))


@pytest.mark.rule("SM-10")
def test_open__with_an_attempt_of_33_bits__reverts(world, first):
    for nonce in (0, 1):
        with ape.reverts("sessions: attempt too large"):
            world.open(choice=first._replace(nonce=nonce, attempt=2**32))


@pytest.mark.rule("SM-9")
def test_open__with_a_later_attempt_on_another_snapshot__reverts(world, first):
    for number in (first.snapshot_block - 1, world.chain.blocks.height):
        block = world.chain.blocks[number]
        changed = first._replace(attempt=1, snapshot_block=number, snapshot_hash=bytes(block.hash))
        with ape.reverts("sessions: not the latest draw"):
            world.open(2, choice=changed)


@pytest.mark.rule("SM-9")
@pytest.mark.parametrize("changes", [{"price_cap": 501}, {"price_cap": 2**256 - 1}, {"policy": 0}])
def test_open__with_a_later_attempt_and_other_terms__reverts(world, first, changes):
    with ape.reverts("sessions: not the latest draw"):
        world.open(2, choice=first._replace(attempt=1, **changes))


@pytest.mark.rule("SM-9")
def test_open__with_a_later_attempt_in_another_category__reverts(world, first):
    service_id = world.service(1, category="mcp:web-search")
    with ape.reverts("sessions: not the latest draw"):
        world.open(service_id, choice=first._replace(attempt=1))


@pytest.mark.rule("SM-9")
def test_open__with_a_later_attempt_and_another_receipt__is_accepted(world, first):
    """A receipt names the attempt and the served service, so its digest differs from attempt to attempt."""
    world.open(2, choice=first._replace(attempt=1, decision=keccak(text="another")))
    assert world.manager.draws(world.client) == 1


@pytest.mark.rule("SM-10")
def test_open__with_a_nonce_ahead__reverts(world, first):
    for nonce in (2, 3, 2**255, 2**256 - 1):
        with ape.reverts("sessions: wrong nonce"):
            world.open(choice=first._replace(nonce=nonce))


@pytest.mark.rule("SM-10")
def test_open__with_a_nonce_of_an_older_draw__reverts(world, first):
    world.open(choice=world.choice())
    with ape.reverts("sessions: wrong nonce"):
        world.open(2, choice=first._replace(attempt=1))


@pytest.mark.rule("SM-8")
def test_open__with_the_next_nonce__starts_a_draw_at_attempt_0(world, first):
    world.open(2, choice=first._replace(attempt=1))
    world.open(choice=world.choice(nonce=1))
    assert world.manager.draws(world.client) == 2


@pytest.mark.rule("SM-9")
def test_open__with_a_later_attempt_after_the_first_ended__is_accepted(world):
    choice = world.choice()
    session_id = world.open(choice=choice)
    world.settle(session_id, 0, 0)
    world.open(2, choice=choice._replace(attempt=1))
    assert [world.manager.active_sessions(node_id) for node_id in (1, 2)] == [0, 1]


@pytest.mark.rule("SM-9", "SM-10")
def test_open__continuing_the_draw_of_somebody_else__reverts(world, first):
    with ape.reverts("sessions: wrong nonce"):
        world.open(2, client=world.other, choice=first._replace(nonce=1, attempt=1))
    world.open(client=world.other)
    with ape.reverts("sessions: not the latest draw"):
        world.open(2, client=world.other, choice=first._replace(attempt=1))


@pytest.mark.rule("SM-16")
def test_open__with_a_policy_of_one_byte__is_accepted_a_wider_one_reverts(world):
    word = 4 + 5 * 32  # the policy is the sixth argument
    data = bytearray(world.manager.open.encode_input(1, DEPOSIT, PRICE, DURATION, EMPTY, world.choice(policy=255)))
    assert data[word : word + 32] == (255).to_bytes(32, "big")
    for wide in (256, 257, 2**256 - 1):
        data[word : word + 32] = wide.to_bytes(32, "big")
        refused_without_a_reason(world.reach, world.manager.address, bytes(data), world.client)
    assert event(world.open_receipt(choice=world.choice(policy=255)), "SessionOpened")["policy"] == 255
