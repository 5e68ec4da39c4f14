import pytest
from eth_utils import keccak

from tests.contracts.world import (
    CATEGORY,
)


@pytest.mark.rule("RLENS-2", "SM-11")
def test_draw_seed__of_arguments__is_their_hash(world):
    choice = world.choice(nonce=7)
    seed = world.lens.draw_seed(choice.snapshot_hash, world.client, 7, keccak(text=CATEGORY))
    assert bytes(seed) == world.draw_seed(choice)
