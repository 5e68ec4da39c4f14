import ape
import pytest
from eth_utils import keccak

from tests.contracts.world import (
    CATEGORY_ID,
    NO_CAP,
)

SEED = keccak(text="seed")


@pytest.mark.rule("RLENS-6")
def test_order__of_a_draw__is_every_kept_one_once_and_cut_at_its_length(market):
    whole = list(market.lens.order(CATEGORY_ID, NO_CAP, SEED, 16))
    assert sorted(whole) == [1, 2]
    for length in (0, 1, 2):
        assert list(market.lens.order(CATEGORY_ID, NO_CAP, SEED, length)) == whole[:length]


@pytest.mark.rule("RLENS-6")
def test_order__of_five_candidates__is_each_kept_one_once_and_a_shorter_one_its_beginning(world):
    kept = [1, 2] + [world.service(world.node(stake=3_000), price=price) for price in (90, 95, 110)]
    world.service(world.node(stake=9_000), price=1_000)  # the guard drops it
    for number in range(4):
        seed = keccak(number.to_bytes(32, "big"))
        whole = list(world.lens.order(CATEGORY_ID, NO_CAP, seed, 16))
        assert sorted(whole) == kept
        for length in range(6):
            assert list(world.lens.order(CATEGORY_ID, NO_CAP, seed, length)) == whole[:length]


@pytest.mark.rule("RLENS-6")
def test_order__longer_than_16__reverts(world):
    with ape.reverts("lens: order too long"):
        world.lens.order(CATEGORY_ID, NO_CAP, SEED, 17)


@pytest.mark.rule("RLENS-8")
def test_order__at_an_older_block__is_what_it_was(market):
    block = market.chain.blocks.height
    before = list(market.lens.order(CATEGORY_ID, NO_CAP, SEED, 16))
    market.registry.set_active(before[0], False, sender=market.operator if before[0] == 1 else market.rival)
    assert list(market.lens.order(CATEGORY_ID, NO_CAP, SEED, 16)) == before[1:]
    assert list(market.lens.order(CATEGORY_ID, NO_CAP, SEED, 16, block_id=block)) == before
