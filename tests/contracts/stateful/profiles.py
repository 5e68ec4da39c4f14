"""The budgets of the stateful test, from the table `tool.counterfoil.hypothesis` in pyproject.toml.

`ci` is derandomised: the same runs at every commit, so a failure belongs to the change that shows it, and no unlucky
commit is blamed for an old defect. New runs are for `nightly`, which draws another seed every time, prints how to
reproduce a failure, and keeps failing examples in `.hypothesis` for the next run.
"""

import os
import tomllib

from hypothesis import HealthCheck, settings

from tests.contracts.conftest import ROOT

VARIABLE = "COUNTERFOIL_PROFILE"
DEFAULT = "ci"
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


def budgets():
    """The table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["counterfoil"]["hypothesis"]


def register():
    """Register a profile for each budget."""
    for name, budget in budgets().items():
        database = {"database": None} if budget.get("derandomize") else {}
        common = {"deadline": None, "print_blob": True, "suppress_health_check": SLOW, **database}
        settings.register_profile(name, settings(settings.get_profile("default"), **budget, **common))


def chosen():
    """The settings of the profile that the environment names; `ci` where it names none."""
    name = os.environ.get(VARIABLE, DEFAULT)
    if name not in budgets():
        raise ValueError(f"{VARIABLE} is {name!r}; choose one of {', '.join(sorted(budgets()))}")
    register()
    return settings.get_profile(name)
