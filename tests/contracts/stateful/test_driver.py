"""The driver's own tests: it fails where contracts and model differ, and rare ends that random runs seldom reach."""

import pytest

from tests.contracts.stateful import deployment as base
from tests.contracts.stateful.deployment import CATEGORY
from tests.model.core import EMPTY, MAX_AMOUNT
from tests.model.ledgers import Record
from tests.model.token import CALLING, FEE, NO_RETURN, REFUSING, SILENT

CLIENT, RICH = base.CLIENTS[0], base.CLIENTS[2]
OPERATOR, WHALE = base.OPERATORS[0], base.OPERATORS[2]
TAKEN = {
    REFUSING: "token: transfer refused",
    SILENT: "token: wrong amount",
    FEE: "token: wrong amount",
    NO_RETURN: None,
}
PAID = {REFUSING: "token: transfer refused", SILENT: None, FEE: None, NO_RETURN: None}


def opened(driver, client=CLIENT, service_id=1, deposit=100, **changes):
    """Open a session of 500 seconds."""
    price = driver.model.registry.services[service_id].price
    terms = (service_id, deposit, price, 500, EMPTY, driver.choice(client, **changes))
    return driver.act("manager", "open", client, *terms).answer


def settled(driver, amount=30, calls=3, client=CLIENT, service_id=1, deposit=100):
    """Open a session and settle it."""
    session_id = opened(driver, client, service_id, deposit)
    operator = driver.model.manager.sessions[session_id].operator
    signature = driver.voucher(session_id, amount, calls) if amount or calls else None
    driver.act("manager", "settle", operator, session_id, amount, calls, signature)
    return session_id


def test_driver__after_a_whole_story__finds_contracts_and_model_equal(driver):
    session_id = settled(driver)
    driver.act("reputation", "rate", CLIENT, session_id, 80)
    dispute_id = driver.act("court", "open_dispute", CLIENT, session_id, 50, "ipfs://evidence").answer
    driver.act("court", "resolve", base.ARBITER, driver.disputed(dispute_id), 50)
    driver.act("court", "withdraw", CLIENT, CLIENT)
    driver.act("manager", "withdraw", CLIENT, CLIENT)
    driver.compare(everything=True)
    assert driver.model.stake.balance(CLIENT) == base.PURSE + 50
    assert driver.model.payment.balance(CLIENT) == base.PURSE - 30


def test_driver__with_a_balance_that_the_model_does_not_know__fails(driver):
    driver.chain.send("payment", "mint", EMPTY, CLIENT, 1)
    with pytest.raises(AssertionError, match="balanceOf"):
        driver.compare()


def test_driver__with_a_credit_that_the_model_does_not_know__fails(driver):
    driver.model.manager.credits[CLIENT] = 1
    with pytest.raises(AssertionError, match="credit_of"):
        driver.compare()


def test_driver__where_the_model_refuses_for_another_reason__fails(driver):
    driver.model.registry.nodes[1].operator = CLIENT
    with pytest.raises(AssertionError, match="not the operator"):
        driver.act("registry", "set_endpoint", OPERATOR, 1, "http://b")


def test_driver__where_the_model_logs_another_event__fails(driver):
    driver.model.registry.unbonding_period += 1
    with pytest.raises(AssertionError, match="StakeChanged"):
        driver.act("registry", "request_unstake", OPERATOR, 1, 1)


def test_solvency__with_books_above_the_balance__fails(driver):
    driver.model.payment.gifts[driver.model.manager.address] = 1
    with pytest.raises(AssertionError):
        driver.check_solvency()


def test_capabilities__beyond_sixteen__are_refused(driver):
    for number in range(17):
        driver.act("registry", "set_capability", OPERATOR, 1, f"many.{number}", True, check=number > 14)
    assert len(driver.model.registry.nodes[1].capabilities) == 16


def test_unbonding__up_to_the_largest_amount__is_refused_beyond(driver):
    most = MAX_AMOUNT - 1 - 5_000
    for _ in range(2):
        driver.act("registry", "add_stake", WHALE, 3, most)
        driver.act("registry", "request_unstake", WHALE, 3, most)
    assert driver.model.registry.nodes[3].unbonding == most


def test_weights_of_ratings__at_their_limit__stay(driver):
    for amount in (2**121 - 1, 1, 5):
        session_id = settled(driver, amount, 1, RICH, 1, amount + 10)
        driver.act("reputation", "rate", RICH, session_id, 100)
    assert driver.model.reputation.ratings(1) == (300, 3, 0, 2**121 - 1, 100 * (2**121 - 1))


def test_unpaid_ratings__beyond_three_more_than_paid__are_not_counted(driver):
    for _ in range(5):
        driver.act("reputation", "rate", CLIENT, settled(driver, 0, 0), 0)
    assert driver.model.reputation.ratings(1)[:3] == (0, 3, 3)
    driver.act("reputation", "rate", CLIENT, settled(driver), 100)
    driver.act("reputation", "rate", CLIENT, settled(driver, 0, 0), 0)
    assert driver.model.reputation.ratings(1)[:3] == (100, 5, 4)


@pytest.mark.parametrize(("mode", "arrived"), [(FEE, 39), (SILENT, 0)])
def test_award__in_a_token_that_turned_dishonest__is_what_arrived(driver, mode, arrived):
    dispute_id = driver.act("court", "open_dispute", CLIENT, settled(driver), 40, "").answer
    driver.set_mode("stake", mode, 0)
    driver.act("court", "resolve", base.ARBITER, driver.disputed(dispute_id), 40)
    assert driver.model.court.credits[CLIENT] == base.BOND + arrived
    driver.act("court", "withdraw", CLIENT, CLIENT)


def test_call_back__into_another_contract__does_what_anyone_may(driver):
    session_id = opened(driver)
    driver.act("manager", "request_close", CLIENT, session_id)
    driver.wait(base.CHALLENGE_PERIOD)
    driver.set_mode("stake", CALLING, 0, ("manager", "finish_close", (session_id,)))
    driver.act("registry", "add_stake", OPERATOR, 1, 5)
    assert driver.model.manager.credits[CLIENT] == 100


def test_call_back__into_the_contract_that_pays__is_refused(driver):
    session_id = opened(driver)
    driver.act("manager", "request_close", CLIENT, session_id)
    driver.wait(base.CHALLENGE_PERIOD)
    driver.set_mode("payment", CALLING, 9, ("manager", "finish_close", (session_id,)))
    opened(driver)
    assert driver.model.payment.answer == 1
    assert driver.model.manager.credits.get(CLIENT, 0) == 0


def test_records__of_three_calls__are_three_at_the_most(driver):
    session_id = settled(driver, 30, 3)
    for number in range(4):
        record = Record(session_id, f"tool-{number}", "need", "task", True, 1, 0, 255, 9, 5, "", "")
        driver.act("experience", "attest", CLIENT, record, driver.signed_record(record, CLIENT))
    assert len(driver.model.experience.of(session_id)) == 3


def test_draw__with_every_listing_paused__is_empty(driver):
    for service_id, operator in enumerate(base.OPERATORS, 1):
        driver.act("registry", "set_active", operator, service_id, False)
    driver.check_draw(CATEGORY, 0, bytes(32), 16)
    driver.check_page(CATEGORY, 3, 1)


def test_award__above_the_claim__is_refused(driver):
    driver.act("court", "open_dispute", CLIENT, settled(driver), 5, "")
    assert driver.act("court", "resolve", base.ARBITER, driver.disputed(1), 6).reason == "court: award above the claim"
    assert driver.act("court", "resolve", base.ARBITER, driver.disputed(1), 5).reason is None


def test_authorization__in_a_token_that_accepts_anything__spends_no_credit(driver):
    settled(driver, 0, 0)
    assert driver.model.manager.credits[CLIENT] == 100
    terms = (1, 50, 10, 60, EMPTY, driver.choice(CLIENT))
    driver.set_mode("payment", SILENT, 0)
    call = ("manager", "open_with_authorization", OPERATOR, CLIENT, *terms, (0, 0, 2**40), None)
    assert driver.act(*call).reason == "token: authorisation not used"


def test_authorization__of_nothing_where_credit_is_enough__opens(driver):
    settled(driver, 0, 0)
    terms, authorization = (1, 50, 10, 60, EMPTY, driver.choice(CLIENT)), (0, 0, 2**40)
    signature = driver.authorization(CLIENT, terms, authorization)
    call = ("manager", "open_with_authorization", OPERATOR, CLIENT, *terms, authorization, signature)
    assert driver.act(*call).reason is None
    assert driver.model.manager.credits[CLIENT] == 50
    assert driver.act(*call).reason == "token: authorisation already used"


@pytest.mark.parametrize("mode", [REFUSING, SILENT, FEE, NO_RETURN])
def test_token__of_every_kind__is_taken_in_full_or_not_at_all(driver, mode):
    session_id = settled(driver)
    driver.set_mode("stake", mode, 9)
    driver.set_mode("payment", mode, 9)
    terms = (1, 1_000, 10, 60, EMPTY, driver.choice(CLIENT))
    calls = [
        ("manager", "open", CLIENT, *terms),
        ("registry", "register_node", OPERATOR, "http://new", 5),
        ("registry", "add_stake", OPERATOR, 1, 5),
        ("court", "open_dispute", CLIENT, session_id, 5, ""),
    ]
    assert {driver.act(*call).reason for call in calls} == {TAKEN[mode]}


@pytest.mark.parametrize("mode", [REFUSING, SILENT, FEE, NO_RETURN])
def test_token__of_every_kind__is_paid_once_or_still_owed(driver, mode):
    driver.act("court", "open_dispute", CLIENT, settled(driver), 9, "")
    driver.act("court", "resolve", base.ARBITER, driver.disputed(1), 9)
    driver.act("registry", "request_unstake", OPERATOR, 1, 5)
    driver.wait(base.UNBONDING_PERIOD)
    driver.set_mode("stake", mode, 9)
    driver.set_mode("payment", mode, 9)
    calls = [
        ("manager", "withdraw", CLIENT, CLIENT),
        ("court", "withdraw", CLIENT, CLIENT),
        ("registry", "withdraw_stake", OPERATOR, 1),
    ]
    assert {driver.act(*call).reason for call in calls} == {PAID[mode]}


def test_operator__of_a_running_session__is_paid_after_the_node_went_over(driver):
    session_id = opened(driver)
    driver.act("registry", "transfer_node", OPERATOR, 1, WHALE)
    driver.act("registry", "accept_node", WHALE, 1)
    refused = driver.act("manager", "settle", WHALE, session_id, 30, 1, driver.voucher(session_id, 30, 1))
    assert refused.reason == "sessions: not the operator"
    driver.act("manager", "settle", OPERATOR, session_id, 30, 1, driver.voucher(session_id, 30, 1))
    assert driver.model.manager.credits == {OPERATOR: 30, CLIENT: 70}


def test_strangers__to_a_node_or_a_session__may_do_nothing_of_its_owners(driver):
    open_id, settled_id = opened(driver), settled(driver)
    stranger = base.RELAYER
    calls = {
        ("manager", "request_close", open_id): "sessions: not the client",
        ("manager", "settle", open_id, 0, 0, None): "sessions: not the operator",
        ("reputation", "rate", settled_id, 5): "reputation: not the client",
        ("court", "open_dispute", settled_id, 5, ""): "court: not the client",
        ("court", "resolve", settled_id, 5): "court: not the arbiter",
        ("court", "offer_arbiter", stranger): "court: not the arbiter",
        ("court", "accept_arbiter"): "court: not offered to you",
        ("registry", "set_price", 1, 5): "registry: not the operator",
        ("registry", "set_active", 1, False): "registry: not the operator",
        ("registry", "set_metadata", 1, ""): "registry: not the operator",
        ("registry", "set_endpoint", 1, "x"): "registry: not the operator",
        ("registry", "set_capability", 1, "a", True): "registry: not the operator",
        ("registry", "list_service", 1, "z", 5, ""): "registry: not the operator",
        ("registry", "transfer_node", 1, stranger): "registry: not the operator",
        ("registry", "accept_node", 1): "registry: not offered to you",
        ("registry", "add_stake", 1, 5): "registry: not the operator",
        ("registry", "request_unstake", 1, 5): "registry: not the operator",
        ("registry", "withdraw_stake", 1): "registry: not the operator",
        ("registry", "slash", 1, 5): "registry: not the court",
        ("registry", "hold", 1): "registry: not the court",
        ("registry", "release", 1): "registry: not the court",
    }
    found = {call: driver.act(*call[:2], stranger, *call[2:]).reason for call in calls}
    assert found == calls


def test_authorization_of_nothing__with_a_token_that_takes_a_fee__opens_from_credit(driver):
    settled(driver, amount=0, calls=0)
    terms = (1, 60, driver.model.registry.services[1].price, 500, EMPTY, driver.choice(CLIENT))
    authorization = (0, 0, 2**40)
    signature = driver.authorization(CLIENT, terms, authorization)
    driver.set_mode("payment", FEE, 0)
    call = ("manager", "open_with_authorization", OPERATOR, CLIENT, *terms, authorization, signature)
    assert driver.act(*call).reason is None
    assert driver.model.manager.credits[CLIENT] == 40
