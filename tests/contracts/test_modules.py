"""The rules of the pure modules by worked examples (boa); `packing` and `lottery` hold them to a second model."""

import boa
import pytest
from eth_account import Account
from eth_utils import keccak

from tests.contracts.conftest import ROOT
from tests.contracts.world import CURVE_ORDER, EMPTY

WAD = 10**18
NO_CAP = 2**256 - 1
SEED = keccak(text="seed")


def load(name):
    return boa.load(str(ROOT / "contracts" / "testing" / f"{name}.vy"))


@pytest.fixture(scope="module")
def packing():
    return load("PackingHarness")


@pytest.fixture(scope="module")
def lottery():
    return load("LotteryHarness")


@pytest.fixture(scope="module")
def signatures():
    return load("SignatureHarness")


@pytest.mark.rule("MOD-1")
def test_pack__of_largest_fields__reads_each_back(packing):
    assert tuple(packing.halves_fields(packing.halves_word(2**128 - 1, 2**128 - 1))) == (2**128 - 1,) * 2
    fields = (2**64 - 1, 0, 2**64 - 1)
    assert tuple(packing.rating_fields(packing.rating_word(*fields))) == fields
    fields = ("0x" + "f" * 40, 0, 2**32 - 1, 0)
    operator, *rest = packing.owner_fields(packing.owner_word(*fields))
    assert (operator.lower(), tuple(rest)) == (fields[0], fields[1:])


@pytest.mark.rule("MOD-1")
def test_pack__of_a_field_one_too_wide__reverts(packing):
    for low, high in ((2**128, 0), (0, 2**128)):
        with boa.reverts("packing: field too wide"):
            packing.halves_word(low, high)
    for fields in ((2**64, 0, 0), (0, 2**64, 0), (0, 0, 2**64)):
        with boa.reverts("packing: field too wide"):
            packing.rating_word(*fields)


def candidate(service_id, price, stake=1_000, rating=(0, 0), active=0, slots=2):
    """A candidate as the harness takes it."""
    return (service_id, price, stake, *rating, active, slots)


@pytest.mark.rule("MOD-7")
def test_weigh__of_two_by_hand__has_every_term(lottery):
    first = candidate(1, 100, 1_000, (180, 2), 1, 4)
    second = candidate(2, 110, 500)
    relaxed, terms = lottery.weigh([first, second], NO_CAP)
    cheapness = 100 * WAD // 110
    quality = (4 * (9 * WAD // 10) + 4 * WAD + 2 * WAD) // 10, (4 * (WAD // 2) + 4 * (WAD // 2) + 2 * cheapness) // 10
    weight = quality[0] * (WAD // 10 + 9 * (3 * WAD // 4) // 10) // WAD, quality[1]
    assert relaxed is False
    assert tuple(terms[0]) == (1, 0, 9 * WAD // 10, WAD, WAD, 3 * WAD // 4, quality[0], weight[0])
    assert tuple(terms[1]) == (2, 0, WAD // 2, WAD // 2, cheapness, WAD, quality[1], weight[1])


@pytest.mark.rule("MOD-7")
@pytest.mark.parametrize(("active", "slots"), [(0, 0), (2, 2), (3, 2), (2**200, 1)])
def test_weigh__of_a_full_node__leaves_a_tenth_of_its_quality(lottery, active, slots):
    _, terms = lottery.weigh([candidate(1, 100, active=active, slots=slots)], NO_CAP)
    assert (terms[0][5], terms[0][7]) == (0, terms[0][6] // 10)


@pytest.mark.rule("MOD-8")
@pytest.mark.parametrize(("price", "rule"), [(300, 0), (301, 1)])
def test_guard__at_120_percent_of_the_average__keeps_and_drops_one_above(lottery, price, rule):
    """Of 200 and 300 the average is 250, and 120% of it 300; 301 is above 120% of 250.5."""
    relaxed, terms = lottery.weigh([candidate(1, 200), candidate(2, price)], NO_CAP)
    assert (relaxed, [term[1] for term in terms]) == (False, [0, rule])


@pytest.mark.rule("MOD-8")
def test_guard__of_cap_and_average__names_the_cap_and_relaxes_where_nobody_is_left(lottery):
    market = [candidate(1, 100), candidate(2, 1_000)]
    assert [term[1] for term in lottery.weigh(market, 100)[1]] == [0, 2]
    relaxed, terms = lottery.weigh(market, 99)
    assert (relaxed, [term[1] for term in terms]) == (True, [0, 0])
    assert tuple(lottery.weigh([], 99)) == (False, [])


@pytest.mark.rule("MOD-9")
def test_order__by_the_seed__is_the_walk_by_hand(lottery):
    market = [candidate(1, 100), candidate(2, 100, 400), candidate(3, 100, 900)]
    left = {term[0]: term[7] for term in lottery.weigh(market, NO_CAP)[1]}
    expected = []
    for k in range(3):
        r = int.from_bytes(keccak(SEED + k.to_bytes(32, "big")), "big") % sum(left.values())
        for service_id in sorted(left):
            if r < left[service_id]:
                break
            r -= left[service_id]
        expected.append(service_id)
        del left[service_id]
    assert list(lottery.order(market, NO_CAP, SEED, 16)) == expected
    assert list(lottery.order(market, NO_CAP, SEED, 1)) == expected[:1]


@pytest.mark.rule("MOD-9")
def test_order__of_equal_candidates__spreads_the_pick_by_the_seed_and_not_by_position(lottery):
    market = [candidate(service_id, 100) for service_id in range(1, 6)]
    picks = [lottery.order(market, NO_CAP, keccak(bytes([i])), 1)[0] for i in range(200)]
    assert all(20 <= picks.count(service_id) <= 60 for service_id in range(1, 6))


@pytest.mark.rule("MOD-9")
def test_find__beyond_the_sum__reverts_instead_of_a_wrong_pick():
    harness = load("DrawHarness")
    assert [harness.find([2, 0, 3], r) for r in range(5)] == [0, 0, 2, 2, 2]
    with boa.reverts("lottery: draw out of range"):
        harness.find([2, 0, 3], 5)


@pytest.mark.rule("SM-29", "RL-8", "EL-3")
def test_recover__of_the_largest_low_s__gives_the_key_and_of_one_above_none(signatures):
    """Nobody can sign with a given s what a contract asks for; here the digest is given and the key comes out."""
    generator_x = 0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798
    low, high = (
        generator_x.to_bytes(32, "big") + s.to_bytes(32, "big") + b"\x1b"
        for s in (CURVE_ORDER // 2, CURVE_ORDER // 2 + 1)
    )
    assert signatures.recover(SEED, low) == Account._recover_hash(SEED, signature=low)
    assert Account._recover_hash(SEED, signature=high) != signatures.recover(SEED, high) == EMPTY


@pytest.mark.rule("MOD-5")
@pytest.mark.parametrize("signature", [b"", b"\0" * 65, b"\7" * 66])
def test_is_valid__for_the_empty_account__never_holds(signatures, signature):
    """What cannot be recovered gives the empty account, which therefore has signed nothing."""
    assert signatures.is_valid(EMPTY, SEED, signature) is False


@pytest.mark.rule("MOD-5")
def test_is_valid__by_the_key_of_the_account__holds_for_it_alone(signatures):
    key = Account.from_key(b"\5" * 32)
    signed = bytes(key.unsafe_sign_hash(SEED).signature)
    assert signatures.is_valid(key.address, SEED, signed) is True
    assert signatures.is_valid(key.address, keccak(SEED), signed) is False
    assert signatures.is_valid(Account.from_key(b"\6" * 32).address, SEED, signed) is False


@pytest.mark.rule("MOD-3")
def test_pull__for_another_than_the_caller__takes_from_the_account_that_is_named():
    payment, harness = load("TestToken"), load("TokenHarness")
    client, relayer = boa.env.generate_address(), boa.env.generate_address()
    for account in (client, relayer):
        payment.mint(account, 100)
        payment.approve(harness, 100, sender=account)
    harness.pull(payment, client, 60, sender=relayer)
    assert [payment.balanceOf(account) for account in (client, relayer, harness.address)] == [40, 100, 60]
    with boa.reverts():
        harness.pull(payment, client, 41, sender=relayer)
    harness.pull(payment, boa.env.generate_address(), 0, sender=relayer)
    assert payment.balanceOf(harness) == 60
