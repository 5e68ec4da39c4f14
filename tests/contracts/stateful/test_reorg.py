"""A decision of the arbiter that is still on its way when a reorg swaps two disputes."""

import boa
import pytest

from tests.contracts.stateful import deployment as base
from tests.contracts.stateful.test_driver import CLIENT, settled


@pytest.mark.rule("DC-30")
def test_resolve__of_two_disputes_that_a_reorg_swaps__slashes_the_node_that_was_judged(driver):
    guilty, innocent = settled(driver, service_id=1), settled(driver, service_id=2)
    with boa.env.anchor():  # the branch that the arbiter saw, and that does not last
        assert driver.chain.send("court", "open_dispute", CLIENT, guilty, 40, "").answer == 1
        assert driver.chain.send("court", "open_dispute", CLIENT, innocent, 40, "").answer == 2
        decision = ("court", "resolve", base.ARBITER, guilty, 40)
        assert driver.chain.send(*decision).reason is None
    assert driver.act("court", "open_dispute", CLIENT, innocent, 40, "").answer == 1
    assert driver.act("court", "open_dispute", CLIENT, guilty, 40, "").answer == 2
    driver.act(*decision)
    assert [driver.model.registry.nodes[i].stake for i in (1, 2)] == [base.STAKES[0] - 40, base.STAKES[1]]
    assert [driver.model.court.disputes[i].status for i in (1, 2)] == [1, 2]


@pytest.mark.rule("DC-14", "DC-30")
def test_resolve__of_a_dispute_that_a_reorg_leaves_out__reaches_nobody(driver):
    judged, other = settled(driver, service_id=1), settled(driver, service_id=2)
    with boa.env.anchor():
        assert driver.chain.send("court", "open_dispute", CLIENT, judged, 40, "").answer == 1
    assert driver.act("court", "open_dispute", CLIENT, other, 40, "").answer == 1
    assert driver.act("court", "resolve", base.ARBITER, judged, 40).reason == "court: not open"
