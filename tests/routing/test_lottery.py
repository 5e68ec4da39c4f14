import random
from dataclasses import astuple, replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.routing import lottery
from counterfoil.routing.lottery import (
    AMOUNT_LIMIT,
    MAX_WEIGHINGS,
    NO_CAP,
    WAD,
    Candidate,
    LotteryError,
    Slate,
    category_id,
    draw_seed,
    pinned_reason,
    promised_shares,
    rank,
    reason,
)
from tests.support.markets import (
    VECTORS,
    candidate,
    caps,
    from_json,
    markets,
    seeds,
    slow_guard,
    slow_order,
    slow_weight,
    unhurried,
)

SEED = bytes(range(32))


def plain(service_id, **changes):
    one = Candidate(service_id, price=100, stake=10, rating_sum=0, rating_count=0, active_sessions=0, max_concurrent=1)
    return replace(one, **changes)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_rank__with_a_frozen_vector__gives_its_integers(case):
    seed = draw_seed(
        bytes.fromhex(case["block_hash"][2:]),
        case["client"],
        case["client_nonce"],
        category_id(case["category"]),
    )
    cap = None if case["price_cap"] is None else int(case["price_cap"])
    ranking = rank([from_json(one) for one in case["candidates"]], seed, cap)

    assert "0x" + seed.hex() == case["draw_seed"]
    assert ranking.relaxed is case["relaxed"]
    assert {str(service_id): drop.rule for service_id, drop in ranking.dropped.items()} == case["dropped"]
    assert {str(service_id) for service_id in ranking.terms} == set(case["terms"])
    for service_id, terms in case["terms"].items():
        found = ranking.terms[int(service_id)]
        assert {name: str(getattr(found, name)) for name in terms} == terms
    assert list(ranking.order) == case["order"]


def test_vectors__are_the_45_frozen_ones():
    assert VECTORS["algorithm"] == "oum-1"
    assert len(VECTORS["cases"]) == 45


@unhurried
@given(markets(), seeds(), caps())
def test_rank__with_any_market__agrees_with_the_slow_reference(market, seed, cap):
    ranking = rank(market, seed, cap)
    kept = [one for one in market if one.service_id in ranking.kept]

    assert {service_id: drop.rule for service_id, drop in ranking.dropped.items()} == slow_guard(market, cap)
    assert {one.service_id: slow_weight(one, kept) for one in kept} == {
        service_id: terms.weight for service_id, terms in ranking.terms.items()
    }
    assert list(ranking.order) == slow_order(market, seed, cap)


@unhurried
@given(st.data(), markets(), seeds(), caps())
def test_rank__with_candidates_in_another_order__gives_the_same_ranking(data, market, seed, cap):
    assert rank(data.draw(st.permutations(market)), seed, cap) == rank(market, seed, cap)


@unhurried
@given(markets(), seeds(), caps())
def test_rank__with_any_market__keeps_every_term_between_zero_and_one(market, seed, cap):
    for terms in rank(market, seed, cap).terms.values():
        assert all(0 <= term <= WAD for term in astuple(terms))


@unhurried
@given(markets(), seeds(), caps())
def test_rank__with_any_market__orders_exactly_the_kept(market, seed, cap):
    ranking = rank(market, seed, cap)
    ids = {one.service_id for one in market}

    assert sorted(ranking.order) == list(ranking.kept)
    assert set(ranking.kept) | set(ranking.dropped) == ids
    assert not set(ranking.kept) & set(ranking.dropped)
    assert bool(ranking.kept) is bool(market)


@unhurried
@given(markets(min_size=1), seeds(), st.integers(1, AMOUNT_LIMIT // 1000))
def test_rank__with_a_whale_far_above_the_average__never_orders_it(market, seed, price):
    others = [replace(one, price=price) for one in market]
    whale = Candidate(401, price * 2, AMOUNT_LIMIT - 1, 100, 1, 0, AMOUNT_LIMIT - 1)
    ranking = rank([*others, whale], seed)

    # One candidate beside it: the average is 1.5 prices, 120% of which is below 2.
    assert ranking.dropped[401].rule == "average"
    assert 401 not in ranking.order


@unhurried
@given(markets(), seeds(), caps())
def test_rank__with_any_market__relaxes_only_for_a_cap_below_every_price(market, seed, cap):
    below_all = cap is not None and bool(market) and all(one.price > cap for one in market)

    assert rank(market, seed, cap).relaxed is below_all


def test_rank__with_no_candidates__is_empty():
    ranking = rank([], SEED, price_cap=5)

    assert (ranking.order, ranking.kept, dict(ranking.dropped), dict(ranking.terms)) == ((), (), {}, {})
    assert ranking.relaxed is False


def test_rank__with_a_cap_that_excludes_all__drops_nobody_and_says_relaxed():
    ranking = rank([plain(1), plain(2, price=1000)], SEED, price_cap=99)

    assert ranking.relaxed is True
    assert ranking.kept == (1, 2)


def test_rank__with_a_price_over_both_limits__drops_it_by_the_cap():
    ranking = rank([plain(1), plain(2), plain(3, price=1000)], SEED, price_cap=500)

    assert ranking.dropped[3].rule == "cap"
    assert ranking.dropped[3].sentence == "price 1000 is above the cap 500"


def test_rank__with_a_price_at_exactly_120_percent__keeps_it():
    # 120 of an average of 100: prices 80, 100 and 120.
    ranking = rank([plain(1, price=80), plain(2), plain(3, price=120)], SEED)

    assert ranking.kept == (1, 2, 3)


def test_rank__with_a_price_just_above_120_percent__names_price_and_average():
    ranking = rank([plain(1, price=80), plain(2), plain(3, price=121)], SEED)

    assert ranking.dropped[3].rule == "average"
    assert ranking.dropped[3].sentence == "price 121 is above 120% of the average 100.33 of 3 candidates"


def test_rank__with_no_cap_on_chain__is_the_ranking_without_a_cap():
    market = [plain(1), plain(2, price=10**30)]

    assert rank(market, SEED, NO_CAP).order == rank(market, SEED).order


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"price": -1}, "candidate 9: price is negative (-1)"),
        ({"stake": 2**128}, f"candidate 9: stake {2**128} is not below {2**128}"),
        ({"rating_count": 2**32}, f"candidate 9: rating_count {2**32} is not below {2**32}"),
        (
            {"rating_sum": 101, "rating_count": 1},
            "candidate 9: rating_sum 101 is more than 100 for each of 1 rating",
        ),
        ({"active_sessions": 1.0}, "candidate 9: active_sessions is not an integer but 1.0"),
        ({"max_concurrent": True}, "candidate 9: max_concurrent is not an integer but True"),
        ({"price": "100"}, "candidate 9: price is not an integer but '100'"),
    ],
)
def test_candidate__with_an_impossible_field__is_refused_by_name(changes, sentence):
    with pytest.raises(LotteryError) as refused:
        plain(9, **changes)

    assert str(refused.value) == sentence


def test_rank__with_a_service_named_twice__is_refused():
    with pytest.raises(LotteryError, match="service 4 is named twice among the candidates"):
        rank([plain(4), plain(5), plain(4, price=7)], SEED)


@pytest.mark.parametrize("seed", [b"", b"\0" * 31, b"\0" * 33, "0" * 32])
def test_rank__with_a_seed_of_another_size__is_refused(seed):
    with pytest.raises(LotteryError, match="the seed of a draw must be 32 bytes"):
        rank([plain(1)], seed)


@pytest.mark.parametrize("cap", [-1, 2**256, 1.5, "5", True])
def test_rank__with_a_cap_that_is_no_uint256__is_refused(cap):
    with pytest.raises(LotteryError, match="is not an unsigned integer of 256 bits"):
        rank([plain(1)], SEED, cap)


@pytest.mark.parametrize("client", ["", "0x12", "22" * 21, "0x" + "zz" * 20])
def test_draw_seed__with_a_malformed_client__is_refused(client):
    with pytest.raises(LotteryError, match="is not an address"):
        draw_seed(SEED, client, 0, SEED)


def test_draw_seed__with_a_short_hash_or_a_large_nonce__is_refused():
    with pytest.raises(LotteryError, match="32 bytes each"):
        draw_seed(b"", "0x" + "22" * 20, 0, SEED)
    with pytest.raises(LotteryError, match="256 bits"):
        draw_seed(SEED, "0x" + "22" * 20, 2**256, SEED)


def test_rank__with_1024_candidates__orders_them_all_like_the_reference():
    generator = random.Random(7)
    market = [plain(i, stake=generator.randrange(10**24), price=100 + i % 9) for i in range(1, 1025)]

    assert list(rank(market, SEED).order)[:16] == slow_order_start(market, SEED, 16)
    assert len(rank(market, SEED).order) == 1024


def slow_order_start(market, seed, length):
    ranking = rank(market, seed)
    weights = {service_id: terms.weight for service_id, terms in ranking.terms.items()}
    order = []
    for k in range(length):
        number = int.from_bytes(keccak_word(seed, k), "big") % sum(weights.values())
        for service_id in sorted(weights):
            if number < weights[service_id]:
                order.append(service_id)
                del weights[service_id]
                break
            number -= weights[service_id]
    return order


def keccak_word(seed, k):
    from eth_hash.auto import keccak

    return keccak(seed + k.to_bytes(32, "big"))


def test_order__over_a_fixed_list_of_seeds__spreads_as_the_weights_promise():
    market = [plain(1, stake=40), plain(2, stake=20), plain(3, rating_sum=95, rating_count=1), plain(4)]
    wins = dict.fromkeys([1, 2, 3, 4], 0)
    for i in range(4000):
        wins[rank(market, i.to_bytes(32, "big")).order[0]] += 1
    promised = promised_shares(rank(market, SEED))

    # Four standard deviations of a share of 4,000 draws are below 0.032.
    for service_id, share in promised.items():
        assert abs(Fraction(wins[service_id], 4000) - share) < Fraction(32, 1000)


def test_order__with_50_equal_candidates__is_not_decided_by_position():
    market = [plain(i) for i in range(1, 51)]
    winners = {rank(market, i.to_bytes(32, "big")).order[0] for i in range(500)}

    assert len(winners) == 50


def test_rank__with_only_zero_weights_left__gives_everyone_the_same_chance():
    worthless = {"stake": 0, "rating_count": 1}
    market = [plain(i, price=10**30, **worthless) for i in range(1, 7)] + [plain(7, price=0, **worthless)]
    ranking = rank(market, SEED)
    zero = [service_id for service_id in ranking.kept if ranking.terms[service_id].weight == 0]

    # The free one is drawn first with certainty; the rest, all weighing 0, follow with equal chances.
    assert zero == [1, 2, 3, 4, 5, 6]
    assert ranking.order[0] == 7
    assert promised_shares(ranking, 1) == {i: Fraction(1, 6) for i in range(1, 7)} | {7: Fraction(0)}
    assert "as one of 6 with equal chances, all weights being 0" in reason(ranking, 1)


@unhurried
@given(markets(min_size=1), seeds(), caps(), st.data())
def test_promised_shares__at_any_draw__add_up_to_one_over_who_is_left(market, seed, cap, data):
    ranking = rank(market, seed, cap)
    attempt = data.draw(st.integers(0, len(ranking.order) - 1))
    shares = promised_shares(ranking, attempt)

    assert sum(shares.values()) == 1
    assert set(shares) == {one.service_id for one in market}
    assert all(shares[service_id] == 0 for service_id in ranking.order[:attempt])
    assert all(shares[service_id] == 0 for service_id in ranking.dropped)


@pytest.mark.parametrize("attempt", [-1, 2])
def test_reason__with_a_draw_that_is_not_there__is_refused(attempt):
    ranking = rank([plain(1), plain(2)], SEED)
    with pytest.raises(LotteryError, match=f"there is no attempt {attempt} of 2 candidates"):
        reason(ranking, attempt)
    with pytest.raises(LotteryError, match=f"there is no attempt {attempt} of 2 candidates"):
        promised_shares(ranking, attempt)


def test_reason__for_each_attempt__names_draw_weight_and_what_was_left():
    ranking = rank([plain(1), plain(2), plain(3, price=150)], SEED)
    first, second = ranking.order

    assert reason(ranking) == f"service {first} won attempt 0 with weight 0.8 of 1.6 over 2 kept candidates; 1 dropped"
    assert reason(ranking, 1) == (
        f"service {second} won attempt 1 with weight 0.8 of 0.8 over 2 kept candidates; 1 dropped"
    )


def test_pinned_reason__for_a_whale__wins_whatever_the_guard_says():
    ranking = rank([plain(1), plain(2), plain(3, price=150)], SEED)

    assert pinned_reason(ranking, 1) == "service 1 is pinned and routable"
    assert pinned_reason(ranking, 3) == (
        "service 3 is pinned and routable, whatever the guard says: "
        "price 150 is above 120% of the average 116.66 of 3 candidates"
    )


def test_pinned_reason__for_a_service_that_is_no_candidate__says_why_not():
    with pytest.raises(LotteryError, match="pinned service 8 is not routable in this category at this block"):
        pinned_reason(rank([plain(1)], SEED), 8)


@unhurried
@given(markets(), st.lists(st.tuples(seeds(), caps()), min_size=1, max_size=12))
def test_rank__of_a_slate_that_was_ranked_before__gives_the_same_ranking(market, draws):
    slate = Slate(market)
    for seed, cap in draws:
        ranking = rank(slate, seed, cap)
        assert ranking == rank(market, seed, cap)
        assert ranking.dropped == rank(market, seed, cap).dropped


def test_rank__of_a_slate_with_caps_that_keep_the_same__weighs_once(monkeypatch):
    weighed = []
    real = lottery._terms
    monkeypatch.setattr(lottery, "_terms", lambda one, scale: weighed.append(one.service_id) or real(one, scale))
    slate = Slate([plain(1, price=10), plain(2, price=11), plain(3, price=12)])
    for cap in (None, 12, 100, NO_CAP, 5):
        rank(slate, SEED, cap)
    assert weighed == [1, 2, 3]
    rank(slate, SEED, 11)
    assert weighed == [1, 2, 3, 1, 2]


def test_slate__of_more_caps_than_it_remembers__still_ranks_right():
    market = [plain(i, price=100 + i) for i in range(1, 3 * MAX_WEIGHINGS)]
    slate = Slate(market)
    caps_up_and_down = [*range(100, 140), *range(140, 100, -1)]
    assert all(rank(slate, SEED, cap) == rank(market, SEED, cap) for cap in caps_up_and_down)


def test_slate__of_candidates_in_any_order__is_the_tuple_of_them_by_id():
    slate = Slate([plain(3), plain(1)])
    assert slate == (plain(1), plain(3))
    assert Slate(slate) is slate


@unhurried
@given(markets(min_size=1), st.data(), seeds(), caps())
def test_slate__changed_step_by_step__ranks_like_a_new_one(market, data, seed, cap):
    slate, ids = Slate(market), [one.service_id for one in market] + [401, 402]
    for _ in range(data.draw(st.integers(1, 3))):
        services = data.draw(st.sets(st.sampled_from(ids), max_size=4))
        new = [data.draw(candidate(one)) for one in sorted(services) if data.draw(st.booleans())]
        market = [one for one in market if one.service_id not in services] + new
        slate = slate.changed(services, new)
        assert slate == Slate(market)
        assert rank(slate, seed, cap) == rank(market, seed, cap)


@pytest.mark.parametrize(
    ("new", "made"),
    [
        (plain(2, price=100, active_sessions=1), [2]),
        (plain(2, price=99), [1, 2, 3]),
        (plain(2, stake=11), [1, 2, 3]),
        (plain(4), [4]),
        (plain(2, price=1000), []),
    ],
    ids=["load", "lowest price", "largest stake", "a new service", "too dear"],
)
def test_slate__with_one_change__makes_only_the_terms_that_change(monkeypatch, new, made):
    slate = Slate([plain(1), plain(2), plain(3)])
    slate.weighing()
    weighed = []
    real = lottery._terms
    monkeypatch.setattr(lottery, "_terms", lambda one, scale: weighed.append(one.service_id) or real(one, scale))
    rank(slate.changed({new.service_id}, [new]), SEED)
    assert weighed == made
