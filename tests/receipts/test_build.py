from dataclasses import replace

import pytest
from hypothesis import given

from counterfoil.receipts import Policy, ReceiptError, Skipped, canonical, digest, parse, replay
from counterfoil.receipts.canonical import document
from counterfoil.routing.lottery import NO_CAP, draw_seed, rank
from counterfoil.routing.lottery import category_id as id_of
from tests.support.markets import caps, markets, unhurried
from tests.support.receipts import CLIENT, CONTRACTS, HASH, MARKET, example, request


def test_build__with_a_market__writes_what_rank_gives():
    receipt = example()
    seed = draw_seed(bytes.fromhex(HASH[2:]), CLIENT, 3, id_of("data:crypto-price"))

    assert receipt.ranking == rank(MARKET, seed)
    assert receipt.draw_seed == "0x" + seed.hex()
    assert receipt.order == receipt.ranking.order
    assert receipt.choice == receipt.order[0]
    assert replay(receipt) == receipt.ranking


def test_document__of_an_example__has_the_fields_of_the_design():
    found = document(example())

    assert list(found) == [
        "v", "kind", "algorithm", "chain_id", "contracts", "snapshot", "request", "candidates", "relaxed",
        "relaxed_reason", "order", "attempt", "skipped", "choice", "reason", "previous", "proves_not",
    ]  # fmt: skip
    assert (found["v"], found["kind"], found["algorithm"]) == (1, "session", "oum-1")
    assert found["contracts"] == CONTRACTS
    assert found["snapshot"] == {"block": 120, "hash": HASH}
    assert found["candidates"][2]["max_concurrent"] == str(2**90)
    assert found["candidates"][3]["rejected"] == {
        "rule": "average",
        "sentence": "price 900 is above 120% of the average 300 of 4 candidates",
    }
    assert "weight" not in found["candidates"][3]
    assert (found["relaxed"], found["relaxed_reason"], found["previous"]) == (False, None, None)
    assert found["reason"].startswith(f"service {found['choice']} won attempt 0 with weight ")
    assert found["proves_not"] == [
        "that the client tried only this snapshot, this cap and this address",
        "that skipped attempts really failed",
        "that the average price was free of decoy listings",
        "that node and client are different people",
    ]


def test_build__with_a_cap_below_every_price__says_relaxed_in_words():
    found = document(example(request=request(price_cap=89)))

    assert found["relaxed"] is True
    assert found["relaxed_reason"] == ("the cap 89 is below the price of all 4 candidates, so nobody was dropped")


def test_build__with_a_pin_on_a_whale__lets_it_win():
    receipt = example(request=request(policy=Policy.PINNED, pinned=9))

    assert (receipt.order, receipt.choice) == ((9,), 9)
    assert receipt.reason == (
        "service 9 is pinned and routable, whatever the guard says: "
        "price 900 is above 120% of the average 300 of 4 candidates"
    )


def test_build__with_a_pin_on_no_candidate__says_why_not():
    with pytest.raises(ReceiptError, match="pinned service 8 is not routable in this category at this block"):
        example(request=request(policy=Policy.PINNED, pinned=8))


def test_build__with_skipped_attempts__chooses_the_next_of_the_order():
    first = example()
    receipt = example(attempt=1, skipped=[Skipped(first.order[0], "no answer in 2 s")], previous=digest(first))

    assert receipt.choice == first.order[1]
    assert receipt.order == first.order
    assert document(receipt)["skipped"] == [{"service_id": first.order[0], "reason": "no answer in 2 s"}]
    assert document(receipt)["previous"] == digest(first)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"attempt": 3}, "attempt 3 is past the 3 services of the order"),
        ({"attempt": -1}, "attempt -1 is past"),
        ({"attempt": 1}, "skipped does not name the 1 services"),
        ({"skipped": [Skipped(1, "why")]}, "skipped does not name the 0 services"),
        ({"candidates": []}, "no routable candidates at this block"),
        ({"candidates": MARKET[:1] * 2}, "service 1 is named twice"),
        ({"candidates": MARKET[:1] * 8193}, "at most 8192 candidates, not 8193"),
        ({"chain_id": 2**53}, "chain_id 9007199254740992 is not an integer from 0"),
        ({"contracts": {}}, "contracts.NodeRegistry is not an address"),
        ({"contracts": CONTRACTS | {"SessionManager": "0x" + "2B" * 20}}, "contracts.SessionManager is"),
        ({"snapshot_block": -1}, "snapshot.block -1 is not an integer"),
        ({"snapshot_hash": "0x" + "5E" * 32}, "snapshot.hash is not 0x"),
        ({"previous": "0x"}, "previous is neither null nor"),
        ({"request": request(category="Data")}, "request.category 'Data' is not a category's name"),
        ({"request": request(category="a" * 65)}, "is not a category's name"),
        ({"request": request(client="0x00")}, "request.client is not an address"),
        ({"request": request(nonce=2**53)}, "request.nonce 9007199254740992 is not"),
        ({"request": request(price_cap=NO_CAP)}, "request.price_cap is neither null nor"),
        ({"request": request(pinned=1)}, "request.pinned names a service exactly when"),
        ({"request": request(policy=Policy.PINNED)}, "request.pinned names a service exactly when"),
        ({"request": request(policy=Policy.PINNED, pinned=2**53)}, "request.pinned 9007199254740992 is not"),
        ({"request": request(found_by="")}, "request.found_by is not a line of 1 to 280 characters"),
        ({"request": request(found_by="two\nlines")}, "request.found_by is not a line of 1 to 280 characters"),
    ],
)  # fmt: skip
def test_build__with_inputs_no_decision_follows_from__says_which(changes, sentence):
    with pytest.raises(ReceiptError) as refused:
        example(**changes)

    assert sentence in str(refused.value)


@pytest.mark.parametrize("why", ["", "x" * 281, "two\nlines", "\ud800"])
def test_build__with_a_reason_that_is_no_line__is_refused(why):
    first = example().order[0]
    with pytest.raises(ReceiptError, match=f"the reason for skipping service {first} is not a line"):
        example(attempt=1, skipped=[Skipped(first, why)])


def test_build__with_how_the_category_was_found__says_it_and_without_has_no_such_field():
    told = example(request=request(found_by="by task, in own memory"))

    assert document(told)["request"]["found_by"] == "by task, in own memory"
    assert parse(canonical(told)).request.found_by == "by task, in own memory"
    assert "found_by" not in document(example())["request"]


@unhurried
@given(markets(min_size=1), caps())
def test_canonical__of_any_market__reads_back_as_the_same_receipt(market, cap):
    receipt = example(candidates=market, request=request(price_cap=cap))

    assert parse(canonical(receipt)) == receipt


def test_canonical__with_8192_candidates__still_fits():
    receipt = example(candidates=[replace(MARKET[2], service_id=i) for i in range(1, 2001)])

    # 2,000 take under a quarter of the largest receipt, so 8,192 fit.
    assert len(canonical(receipt)) < 4 * 2**20 // 4
