"""The profiles of the stateful test are known to Hypothesis before any test of this folder is collected."""

from tests.contracts.stateful import profiles

profiles.register()
