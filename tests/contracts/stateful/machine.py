"""The whole suite beside its model, under random calls of random accounts at random times."""

from collections import Counter
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.contracts.stateful.driver import Driver
from tests.contracts.stateful.rules_ledgers import LedgerRules
from tests.contracts.stateful.rules_registry import RegistryRules
from tests.contracts.stateful.rules_sessions import SessionRules
from tests.contracts.stateful.rules_world import WorldRules
from tests.model.core import NO_CAP


class Machine(WorldRules, RegistryRules, SessionRules, LedgerRules):
    """One run. The driver compares everything after every action, so that no action can forget to.

    There is one rule, which chooses among weighted actions. With a rule for each, Hypothesis switches most of them off
    in most runs, and a session that is opened, settled, rated and disputed needs many of them on.
    """

    totals: ClassVar = Counter()

    @initialize(
        one_token=st.booleans(), price_cap=st.sampled_from([NO_CAP, 12, 0]), seed=st.binary(min_size=32, max_size=32)
    )
    def deploy(self, one_token, price_cap, seed):
        self.driver = Driver(one_token, price_cap, seed)

    @rule(data=st.data())
    def act(self, data):
        self.totals["steps"] += 1
        name = data.draw(st.sampled_from(self.possible()), label="action")
        getattr(self, name)(data)

    def teardown(self):
        if self.driver is not None:
            self.totals.update(runs=1, **self.driver.counts)
            self.driver.close()
