"""The harness on a real chain: the vectors again, and many larger markets than boa has time for."""

import pytest
from eth_abi import decode, encode
from eth_utils import keccak

from tests.contracts.lottery.markets import (
    CASES,
    MAX_ORDER,
    cap_word,
    case_candidates,
    expected_rows,
    markets,
    seed_of,
    terms_rows,
    words,
)

CANDIDATE = "(uint256,uint256,uint256,uint256,uint256,uint256,uint256)"
TERMS = "(uint256,uint8,uint256,uint256,uint256,uint256,uint256,uint256)"
WEIGH = (f"weigh({CANDIDATE}[],uint256)", [f"{CANDIDATE}[]", "uint256"], ["bool", f"{TERMS}[]"])
ORDER = (
    f"order({CANDIDATE}[],uint256,bytes32,uint256)",
    [f"{CANDIDATE}[]", "uint256", "bytes32", "uint256"],
    ["uint256[]"],
)


@pytest.fixture(scope="module")
def call(world):
    """An `eth_call` of the deployed harness, without Ape's conversions in between."""
    harness = world.deployer.deploy(world.project.LotteryHarness)
    web3 = world.chain.provider.web3

    def send(function, *arguments):
        signature, takes, gives = function
        data = keccak(text=signature)[:4] + encode(takes, arguments)
        return decode(gives, web3.eth.call({"to": harness.address, "data": data}))

    return send


def test_weigh_and_order__of_every_vector__are_as_written(call):
    for case in CASES:
        rows, cap = [words(one) for one in sorted(case_candidates(case))], cap_word(case["price_cap"])
        assert call(WEIGH, rows, cap) == (case["relaxed"], tuple(expected_rows(case))), case["name"]
        (order,) = call(ORDER, rows, cap, seed_of(case), MAX_ORDER)
        assert list(order) == case["order"][:MAX_ORDER], case["name"]


@pytest.mark.parametrize("batch", range(4))
def test_weigh_and_order__of_random_markets_of_up_to_40__are_pythons(call, batch):
    for candidates, cap, seed, ranking in markets(f"anvil {batch}", 300, lambda random: random.randint(0, 40)):
        rows = [words(one) for one in candidates]
        assert call(WEIGH, rows, cap_word(cap)) == (ranking.relaxed, tuple(terms_rows(ranking)))
        (order,) = call(ORDER, rows, cap_word(cap), seed, MAX_ORDER)
        assert order == ranking.order
