"""Corners that random runs seldom reach, for the coverage of the contracts: views, labels, wallets, draws."""

import boa
import pytest
from eth_abi import encode
from eth_utils import keccak

from counterfoil.routing.lottery import Candidate, draw_seed, rank
from tests.contracts.stateful import deployment as base
from tests.contracts.stateful.chain import Outcome, contract
from tests.contracts.stateful.driver import Driver
from tests.contracts.stateful.signing import domain
from tests.contracts.stateful.test_driver import CLIENT, OPERATOR, opened, settled
from tests.model.core import EMPTY, NO_CAP, Message
from tests.model.suite import View

LABELS = [
    "a",
    "0",
    "z9",
    "a.b",
    "a-b",
    "a:b",
    "a" * 64,
    "",
    ".a",
    "-a",
    ":a",
    "A",
    "a b",
    "a_b",
    "a/b",
    "{",
    "a{",
    "a`",
]
NOTHING = (EMPTY, 0, 0, 0, 0, 0, 0, "")


@pytest.fixture
def driver():
    driver = Driver()
    yield driver
    driver.undo.__exit__(None, None, None)


def address(driver, name):
    return str(driver.chain.parts[name].address)


def test_parameters__of_every_contract__are_what_it_was_deployed_with(driver):
    names = ("stake", "payment", "registry", "manager", "reputation")
    stake, payment, registry, manager, reputation = (address(driver, name) for name in names)
    court = (registry, manager, stake, base.BOND, base.DISPUTE_WINDOW, base.RESOLVE_WINDOW)
    wanted = {
        View("registry", "parameters", ()): (
            stake,
            base.MIN_STAKE,
            base.STAKE_PER_SLOT,
            base.UNBONDING_PERIOD,
            address(driver, "court"),
        ),
        View("manager", "parameters", ()): (
            payment,
            registry,
            base.CHALLENGE_PERIOD,
            base.MAX_DURATION,
            base.MAX_SNAPSHOT_AGE,
        ),
        View("court", "parameters", ()): court,
        View("reputation", "session_manager", ()): manager,
        View("experience", "session_manager", ()): manager,
        View("lens", "contracts", ()): (registry, manager, reputation),
    }
    assert {view: driver.chain.ask(view) for view in wanted} == wanted


@pytest.mark.parametrize("name", ["manager", "reputation", "experience"])
def test_domain_separator__of_a_contract__is_its_own(driver, name):
    message = Message("Rating", address(driver, name), ())
    assert driver.chain.ask(View(name, "domain_separator", ())) == domain(message, driver.model.world.chain_id)


def test_views__of_what_does_not_exist__are_empty(driver):
    assert driver.chain.ask(View("registry", "nodes", (9,))) == NOTHING
    assert driver.chain.ask(View("court", "disputes", (9,))) == (bytes(32), 0, EMPTY, EMPTY, 0, 0, 0)
    assert driver.chain.ask(View("reputation", "score_of", (b"\7" * 32,))) == (False, 0)
    assert driver.chain.ask(View("lens", "candidates", (keccak(text="nobody"), 0, 9))) == []


def test_draw_seed__of_the_lens__is_the_seed_of_the_product(driver):
    category = keccak(text=base.CATEGORY)
    seed = driver.chain.ask(View("lens", "draw_seed", (b"\5" * 32, CLIENT, 7, category)))
    assert seed == draw_seed(b"\5" * 32, CLIENT, 7, category)


def test_candidates__of_a_page_that_is_too_long__revert(driver):
    outcome = driver.chain.send("lens", "candidates", EMPTY, keccak(text=base.CATEGORY), 0, 1025)
    assert outcome == Outcome("lens: too many listings")


@pytest.mark.parametrize("label", LABELS)
def test_labels__of_every_kind__are_taken_or_refused_as_the_grammar_says(driver, label):
    driver.act("registry", "set_capability", OPERATOR, 1, label, True)
    driver.act("registry", "list_service", OPERATOR, 1, label, 5, "")


def test_dispute__that_is_refused__gives_the_operator_the_bond(driver):
    driver.act("court", "open_dispute", CLIENT, settled(driver), 5, "")
    driver.act("court", "resolve", base.ARBITER, driver.disputed(1), 0)
    assert driver.model.court.credits == {OPERATOR: base.BOND}


def test_award__of_a_node_without_stake__is_nothing(driver):
    session_id = settled(driver)
    driver.act("court", "open_dispute", CLIENT, session_id, 9_000, "")
    other = settled(driver)
    driver.act("court", "open_dispute", CLIENT, other, 5, "")
    driver.act("registry", "request_unstake", OPERATOR, 1, 1_500)
    driver.act("court", "resolve", base.ARBITER, driver.disputed(1), 9_000)
    driver.act("court", "resolve", base.ARBITER, driver.disputed(2), 5)
    assert driver.model.court.credits == {CLIENT: 2 * base.BOND + 2_000}


def test_capability__that_is_taken_back__is_counted_no_more(driver):
    for enabled in (True, False, False):
        driver.act("registry", "set_capability", OPERATOR, 1, "a", enabled)
    assert driver.model.registry.nodes[1].capabilities == set()


def test_dispute__without_a_bond__costs_nothing_and_credits_nothing():
    driver = Driver(bond=0)
    driver.act("court", "open_dispute", CLIENT, settled(driver), 5, "")
    driver.act("court", "resolve", base.ARBITER, driver.disputed(1), 0)
    assert driver.model.court.credits == {}
    driver.close()


def test_full_node__in_the_lens__has_no_headroom(driver):
    for _ in range(4):
        opened(driver)
    assert driver.model.weights(base.CATEGORY, NO_CAP)[1][0][5] == 0


@pytest.mark.parametrize("mode", range(9))
def test_wallet__of_any_kind__rates_only_where_it_approves(driver, mode):
    """A wallet contract that reverts or answers rubbish has not signed; modes 1 and 5 approve."""
    wallet = contract("testing/Wallet1271")
    client = str(wallet.address)
    driver.chain.send("payment", "mint", EMPTY, client, 100)
    choice = driver.choice(CLIENT)._replace(nonce=0)
    session_id = driver.chain.send("manager", "open", client, 1, 100, 10, 50, EMPTY, choice).answer
    driver.chain.send("manager", "settle", OPERATOR, session_id, 0, 0, b"")
    wallet.answer(mode, b"signed")
    outcome = driver.chain.send("reputation", "rate_by_signature", base.RELAYER, session_id, 80, b"signed")
    assert outcome.reason == (None if mode in (1, 5) else "reputation: bad signature")


def market(*rows):
    """Candidates of price, stake and rating, with free slots."""
    return [Candidate(i, price, stake, rating, 1, 0, 4) for i, (price, stake, rating) in enumerate(rows, 1)]


@pytest.mark.parametrize("cap", [NO_CAP, 1, 0])
@pytest.mark.parametrize(
    "candidates",
    [
        market((0, 2**127, 50), *[(1, 0, 0)] * 6),
        market((5, 9, 0), (9, 9, 100)),
        market((60, 1, 50), (40, 1, 50)),
        market((604, 1, 50), (396, 1, 50)),
        market((5, 0, 0), (5, 0, 0)),
        [],
    ],
    ids=["weights of 0", "over the average", "just 120% of it", "just over 120%", "without stake", "nobody"],
)
def test_order__of_a_market__is_that_of_the_product(candidates, cap):
    lottery = contract("testing/LotteryHarness")
    rows = [tuple(getattr(candidate, name) for name in Candidate.__slots__) for candidate in candidates]
    for number in range(5):
        seed = keccak(encode(["uint256"], [number]))
        ranking = rank(candidates, seed, None if cap == NO_CAP else cap)
        assert lottery.order(rows, cap, seed, 64) == list(ranking.order)
        assert lottery.weigh(rows, cap)[0] == ranking.relaxed


def test_draw__beyond_the_sum_of_its_pulls__reverts():
    with boa.reverts("lottery: draw out of range"):
        contract("testing/DrawHarness").find([1, 0], 1)


def test_signature__of_nobody__is_none(driver):
    token = contract("testing/TestToken")
    with boa.reverts("token: bad signature"):
        token.permit(EMPTY, CLIENT, 1, 2**256 - 1, b"")
