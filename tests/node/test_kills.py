"""kill -9 of the real command at random instants. The variables NODE_KILLS and NODE_SEED play it otherwise."""

import os
import random

from tests.support.node_kills import play

KILLS = int(os.environ.get("NODE_KILLS", "10"))


def test_serve__killed_at_random_instants__loses_no_voucher_and_serves_nothing_unpaid(scene):
    seed = int(os.environ.get("NODE_SEED", random.randrange(10**6)))
    print(f"seed {seed}")
    report = play(scene.world, seed, KILLS, scene.settings.home)
    print(report)
    assert report.wrong == []
    assert (report.kills, report.calls > KILLS, report.retries > 0) == (KILLS, True, True)
