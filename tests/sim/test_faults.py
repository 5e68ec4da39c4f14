"""Every fault once, with a fixed seed, on small chains; `make sim` plays them more often, on large ones."""

import pytest

from tests.sim.case import SMALL
from tests.sim.cases import BY_NAME, CASES
from tests.sim.kills import kill_often
from tests.sim.lab import Outcome
from tests.sim.stage import Stage
from tests.sim.walk import walk

SEED = 1
KILLS = 20
STORES = ("sqlite", "postgresql")
QUICK = [case for case in CASES if not case.long]
ON_SQLITE = [case.name for case in QUICK if "sqlite" in case.stores]
ON_POSTGRESQL = [case.name for case in QUICK if case.group == "process" and "postgresql" in case.stores] + [
    "every n-th answer empty",
    "connection cut in mid-body",
    "reorg while following, depth 64",
    "reorg while in backfill, depth 1 to 64",
    "reorg deeper than finality",
]
BLIND = [case.name for case in QUICK if case.in_bloom is not None]


@pytest.fixture(scope="module")
def stage():
    with Stage(SMALL) as made:
        yield made


def has_to_be(stage, name, kind, verify="full"):
    verdict = stage.play(BY_NAME[name], kind, SEED, verify)
    assert verdict.outcome is BY_NAME[name].expected(verify), f"seed {SEED}: {verdict.outcome}, {verdict.why}"


@pytest.mark.parametrize("name", ON_SQLITE)
def test_index_in_sqlite__with_a_fault__is_exact_or_stops_with_a_sentence(stage, name):
    has_to_be(stage, name, "sqlite")


@pytest.mark.parametrize("name", ON_POSTGRESQL)
def test_index_in_postgresql__with_a_fault__is_exact_or_stops_with_a_sentence(stage, name):
    has_to_be(stage, name, "postgresql")


@pytest.mark.parametrize("name", BLIND)
def test_index_in_bloom_mode__with_what_it_cannot_see__is_wrong_as_the_table_says(stage, name):
    has_to_be(stage, name, "sqlite", "bloom")


@pytest.mark.parametrize("kind", STORES)
def test_index__killed_at_random_instants__has_the_rows_of_a_clean_index(stage, kind):
    kills = kill_often(stage, kind, KILLS, SEED)
    assert (kills.killed, kills.wrong) == (KILLS, []), f"seed {SEED}"
    assert kills.finished > 0


@pytest.mark.parametrize("kind", STORES)
def test_index__over_a_walk_of_faults_reorgs_and_kills__has_the_rows_of_a_clean_index(stage, kind):
    walked = walk(stage, kind, steps=24, seed=SEED)
    assert walked.verdict.outcome is Outcome.EXACT, f"seed {SEED}: {walked.verdict.why} after {walked.steps}"
    assert walked.quiet_points == 4
