"""The budgets of the stateful test are named, and the environment chooses one of them."""

import pytest

from tests.contracts.stateful import profiles


def test_budgets__of_the_project__are_dev_ci_and_nightly():
    assert set(profiles.budgets()) == {"dev", "ci", "nightly"}
    assert all({"max_examples", "stateful_step_count", "derandomize"} == set(b) for b in profiles.budgets().values())


@pytest.mark.parametrize("name", ["dev", "ci", "nightly"])
def test_chosen__by_the_environment__is_that_budget_without_a_deadline(monkeypatch, name):
    monkeypatch.setenv(profiles.VARIABLE, name)
    budget = profiles.chosen()
    assert budget.max_examples == profiles.budgets()[name]["max_examples"]
    assert budget.stateful_step_count == profiles.budgets()[name]["stateful_step_count"]
    assert budget.deadline is None
    assert budget.print_blob


def test_chosen__without_a_name__is_ci_and_the_same_at_every_run(monkeypatch):
    monkeypatch.delenv(profiles.VARIABLE, raising=False)
    assert profiles.chosen().derandomize
    assert profiles.chosen().max_examples == profiles.budgets()["ci"]["max_examples"]


def test_chosen__with_an_unknown_name__says_which_there_are(monkeypatch):
    monkeypatch.setenv(profiles.VARIABLE, "weekly")
    with pytest.raises(ValueError, match="choose one of ci, dev, nightly"):
        profiles.chosen()
