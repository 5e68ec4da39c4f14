"""The whole suite of contracts does what a plain model does, whatever is called, by whom and when."""

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.contracts.stateful.machine import Machine
from tests.contracts.stateful.profiles import chosen


@pytest.mark.timeout(1800)  # what the profile nightly may take
def test_suite__under_random_calls_at_random_times__does_what_the_model_does():
    Machine.totals.clear()
    try:
        run_state_machine_as_test(Machine, settings=chosen())
    finally:
        print(dict(Machine.totals))
