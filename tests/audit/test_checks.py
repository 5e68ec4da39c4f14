from dataclasses import replace

import pytest

from counterfoil.audit import checks
from counterfoil.audit.model import Check, Outcome, Part, SessionAudit, overall
from counterfoil.chain.contracts import Weighed
from counterfoil.routing.lottery import rank
from tests.audit.test_range import FACTS, MARKET, SEED

RANKING = rank(MARKET, SEED)
WEIGHED = Weighed(False, dict(RANKING.terms), {})


def test_check_lens__with_the_same_integers__is_ok():
    found = checks.check_lens(FACTS, RANKING, RANKING.order[:1], WEIGHED)

    assert (found.outcome, found.sentence) == (Outcome.OK, "weights and order[0..0] are the same on chain")


@pytest.mark.parametrize(
    ("weighed", "order", "sentence"),
    [
        (replace(WEIGHED, relaxed=True), RANKING.order[:1], "relaxed is True by the lens and False here"),
        (replace(WEIGHED, dropped={2: "cap"}), RANKING.order[:1], "candidate 2: cap by the lens and None here"),
        (replace(WEIGHED, terms={}), RANKING.order[:1], "candidate 1: None by the lens and Terms("),
        (WEIGHED, RANKING.order[1:2], "the order is ["),
        (WEIGHED, (), "the order is [] by the lens and ["),
    ],
)
def test_check_lens__with_another_integer__names_it(weighed, order, sentence):
    found = checks.check_lens(FACTS, RANKING, order, weighed)

    assert found.outcome is Outcome.MISMATCH
    assert sentence in found.sentence


def test_check_snapshot__with_a_block_that_is_not_held__cannot_be_checked():
    found = checks.check_snapshot(Part.INDEX, FACTS, None)

    assert (found.outcome, found.sentence) == (
        Outcome.UNKNOWN,
        "block 10 is not in the index: index from the first block on",
    )


def test_check_id__with_terms_that_give_another_id__names_it():
    found = checks.check_id(Part.INDEX, FACTS, 31337, "0x" + "99" * 20)

    assert found.outcome is Outcome.MISMATCH
    assert found.sentence.startswith("the session's terms in the index give the id 0x")


def test_check_seed__with_another_seed__gives_both():
    found = checks.check_seed(Part.STATE, FACTS)

    assert found.outcome is Outcome.MISMATCH
    assert found.sentence.startswith("draw 0 of the client has the seed 0x")


def test_check_price__above_max_price__is_a_mismatch():
    found = checks.check_price(Part.INDEX, replace(FACTS, price=101), MARKET)

    assert found.sentence == "the session's price 101 is above its max_price 100 in the index"


def test_check_service__pinned_and_not_routable__is_a_mismatch():
    found = checks.check_service(Part.STATE, replace(FACTS, policy=0, service_id=9), RANKING)

    assert found.sentence == "pinned service 9 was not routable at block 10 on chain"


def test_check_service__with_an_unknown_policy__says_its_number():
    found = checks.check_service(Part.STATE, replace(FACTS, policy=77), RANKING)

    assert found.sentence == "policy 77 cannot be replayed by this version: upgrade"


def test_first_difference__with_several__names_the_lowest_service_and_the_first_field():
    other = [replace(MARKET[0], stake=11, active_sessions=3), replace(MARKET[1], price=1), MARKET[2]]

    assert checks.first_difference(MARKET, other, "here", "there") == "candidate 1: stake is 10 here and 11 there"
    assert checks.first_difference(MARKET, MARKET[1:], "here", "there") == (
        "candidate 1: is routable here and is missing there"
    )
    assert checks.first_difference(MARKET, MARKET[::-1], "here", "there") is None


def test_lens_too_small__for_a_large_category__is_a_note():
    assert checks.lens_too_small(1025).outcome is Outcome.NOTE


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [
        ([], Outcome.UNKNOWN),
        ([Outcome.OK, Outcome.NOTE], Outcome.OK),
        ([Outcome.OK, Outcome.UNKNOWN], Outcome.UNKNOWN),
        ([Outcome.UNKNOWN, Outcome.MISMATCH, Outcome.OK], Outcome.MISMATCH),
    ],
)
def test_overall__of_several_checks__lets_the_worst_decide(outcomes, together):
    assert overall([Check(Part.STATE, "x", outcome, "") for outcome in outcomes]) is together


def test_session_audit__without_checks_of_a_part__has_no_outcome_of_it():
    assert SessionAudit(FACTS.session_id, FACTS, None, None, ()).outcome_of(Part.INDEX) is None


@pytest.mark.parametrize(
    "changes", [{"client": "me"}, {"draw_seed": "0x"}, {"policy": 256}, {"price": -1}, {"nonce": 2**256}]
)
def test_session_facts__that_no_event_can_have_said__are_refused(changes):
    with pytest.raises(ValueError, match=f"{next(iter(changes))} of session 0x"):
        replace(FACTS, **changes)
