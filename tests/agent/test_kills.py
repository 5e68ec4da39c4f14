"""kill -9 at random instants of a real agent and real nodes; `make sim` does it 200 times each."""

import pytest

from tests.sim.lives import FAULTS, kill_on
from tests.support.lives import lives

SEED = 1
KILLS = 10
PAIRS = 5


@pytest.fixture(scope="module")
def on(tmp_path_factory):
    with lives(tmp_path_factory.mktemp("lives"), SEED) as made:
        yield made


@pytest.mark.parametrize("fault", FAULTS)
def test_run__killed_at_random_instants__loses_and_doubles_no_unit(on, fault):
    table = kill_on(on, fault, KILLS, SEED)
    assert (table.kills, table.lost, table.wrong) == (KILLS, 0, []), f"seed {SEED}"
    assert table.done > 0


def test_runs__of_two_processes_with_one_wallet__all_succeed(on):
    for _ in range(PAIRS):
        pair = [on.start(), on.start()]
        for ended in [child.wait() for child in pair]:
            assert ended.code == 0, ended.err
    on.resume()
    assert (on.wrong(), on.books.lost()) == ([], 0)
