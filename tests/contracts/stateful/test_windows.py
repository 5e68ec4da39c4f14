"""Every moment from which something is allowed or refused: the second before it and the one at it, in both worlds."""

import pytest

from tests.contracts.stateful import deployment as base
from tests.contracts.stateful.test_driver import CLIENT, OPERATOR, opened, settled
from tests.model.core import EMPTY, NO_CAP


def reasons_around(driver, moment, *call):
    """How a call ends in the second before a moment and at it."""
    found = []
    for second in (moment - 1, moment):
        driver.set_clock(now=second)
        found.append(driver.act(*call).reason)
    return found


def test_finish_close__around_the_challenge_periods_end__works_from_it_on(driver):
    session_id = opened(driver)
    driver.act("manager", "request_close", CLIENT, session_id)
    end = base.START + base.CHALLENGE_PERIOD
    found = reasons_around(driver, end, "manager", "finish_close", base.RELAYER, session_id)
    assert found == ["sessions: challenge period runs", None]


def test_expire__around_the_challenge_period_after_expiry__works_from_its_end_on(driver):
    session_id = opened(driver)
    end = base.START + 500 + base.CHALLENGE_PERIOD
    found = reasons_around(driver, end, "manager", "expire", base.RELAYER, session_id)
    assert found == ["sessions: not expired", None]


def test_withdraw_stake__around_its_release__works_from_it_on(driver):
    driver.act("registry", "request_unstake", OPERATOR, 1, 5)
    end = base.START + base.UNBONDING_PERIOD
    assert reasons_around(driver, end, "registry", "withdraw_stake", OPERATOR, 1) == ["registry: still unbonding", None]


def test_request_unstake__once_more__starts_the_period_anew(driver):
    driver.act("registry", "request_unstake", OPERATOR, 1, 5)
    driver.wait(10)
    driver.act("registry", "request_unstake", OPERATOR, 1, 1)
    end = base.START + 10 + base.UNBONDING_PERIOD
    assert reasons_around(driver, end, "registry", "withdraw_stake", OPERATOR, 1) == ["registry: still unbonding", None]


def test_withdraw_stake__with_an_open_dispute__waits_for_its_end(driver):
    driver.act("registry", "request_unstake", OPERATOR, 1, 5)
    session_id = settled(driver)
    driver.act("court", "open_dispute", CLIENT, session_id, 9, "")
    driver.wait(base.UNBONDING_PERIOD)
    assert driver.act("registry", "withdraw_stake", OPERATOR, 1).reason == "registry: held by a dispute"
    driver.act("court", "drop", base.RELAYER, 1)
    assert driver.act("registry", "withdraw_stake", OPERATOR, 1).reason is None


@pytest.mark.parametrize(("offset", "reason"), [(-1, None), (0, "court: dispute window is over")])
def test_open_dispute__around_the_windows_end__is_refused_from_it_on(driver, offset, reason):
    session_id = settled(driver)
    driver.set_clock(now=base.START + base.DISPUTE_WINDOW + offset)
    assert driver.act("court", "open_dispute", CLIENT, session_id, 5, "").reason == reason


@pytest.mark.parametrize(("offset", "reason"), [(-1, None), (0, "court: resolve window is over")])
def test_resolve__around_the_windows_end__is_refused_from_it_on(driver, offset, reason):
    driver.act("court", "open_dispute", CLIENT, settled(driver), 5, "")
    driver.set_clock(now=base.START + base.RESOLVE_WINDOW + offset)
    assert driver.act("court", "resolve", base.ARBITER, driver.disputed(1), 5).reason == reason


def test_drop__around_the_resolve_windows_end__works_from_it_on(driver):
    driver.act("court", "open_dispute", CLIENT, settled(driver), 5, "")
    end = base.START + base.RESOLVE_WINDOW
    assert reasons_around(driver, end, "court", "drop", base.RELAYER, 1) == ["court: resolve window runs", None]


@pytest.mark.parametrize(
    ("age", "reason"),
    [(0, "sessions: snapshot not in the past"), (1, None), (5, None), (6, "sessions: snapshot too old")],
)
def test_open__on_a_snapshot_of_any_age__takes_one_to_five_blocks(driver, age, reason):
    choice = driver.choice(CLIENT, snapshot_block=base.FIRST_BLOCK - age)
    assert driver.act("manager", "open", CLIENT, 1, 100, NO_CAP, 5, EMPTY, choice).reason == reason


@pytest.mark.parametrize(
    ("after", "until", "reason"),
    [(-1, 1, None), (0, 1, "token: not yet valid"), (-1, 0, "token: authorisation expired")],
)
def test_authorization__around_its_times__is_used_between_them_alone(driver, after, until, reason):
    terms = (1, 100, NO_CAP, 5, EMPTY, driver.choice(CLIENT))
    authorization = (100, base.START + after, base.START + until)
    signature = driver.authorization(CLIENT, terms, authorization)
    call = ("manager", "open_with_authorization", base.RELAYER, CLIENT, *terms, authorization, signature)
    assert driver.act(*call).reason == reason


@pytest.mark.parametrize(("duration", "reason"), [(0, "sessions: duration out of range"), (1, None), (1_000, None)])
def test_open__for_the_shortest_and_longest_time__works(driver, duration, reason):
    terms = (1, 10, 10, duration, EMPTY, driver.choice(CLIENT))
    assert driver.act("manager", "open", CLIENT, *terms).reason == reason
