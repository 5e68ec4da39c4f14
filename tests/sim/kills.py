"""kill -9 at random instants of a real `counterfoil index run`, in backfill and in reorgs, over and over one index."""

import os
import random
import signal
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.sim.lab import Outcome
from tests.sim.node_faults import At

LONGEST_DELAY = 0.02
"""Seconds between a request and the kill, at most: the next write falls into it."""
REORG_SHARE = 0.15


@dataclass
class Kills:
    """What the kill table says of a store."""

    store: str
    seed: object
    killed: int = 0
    empty: int = 0
    """Kills after which the index held nothing yet."""
    reorgs: int = 0
    """Reorgs that a killed process had to follow."""
    finished: int = 0
    """Runs that ended by themselves and were compared in full."""
    wrong: list = field(default_factory=list)


def kill_often(stage, kind, count, seed, say=lambda _: None):
    """Kill so many processes; after each one the rows must be those of a clean index up to the cursor's block.

    Ends sooner where they are not.
    """
    rng = random.Random(f"kills/{kind}/{seed}")
    table = Kills(kind, seed)
    with ExitStack() as stack:
        lab = stage.lab(stack, stage.size, True, kind, f"kills/{seed}", "full")
        lab.remember()
        start_command(lab).wait()
        requests = lab.proxy.requests
        while table.killed < count and not table.wrong:
            with lab.stores.fresh() as lab.store:
                _one_life(lab, rng, table, count, requests)
            say(table)
    return table


def _one_life(lab, rng, table, count, requests):
    """Kill an index again and again until it is complete and exact; a whole run makes so many requests."""
    while True:
        if rng.random() < REORG_SHARE and lab.store.cursor() is not None:
            _reorg(lab, rng)
            table.reorgs += 1
        if table.killed < count:
            ended = kill_at(lab, rng.randint(1, _left(lab, requests)), rng.uniform(0, LONGEST_DELAY))
        else:
            lab.proxy.inject()
            ended = start_command(lab).wait()
        if ended.code == 0:
            table.finished += 1
            verdict = lab.judge()
            if verdict.outcome is not Outcome.EXACT:
                table.wrong.append(verdict.why)
            return
        _judge_killed(lab, ended, table)
        if ended.code != -signal.SIGKILL:
            return


def _judge_killed(lab, ended, table):
    if ended.code != -signal.SIGKILL:
        table.wrong.append(f"exit code {ended.code}: {ended.err[-300:]}")
        return
    table.killed += 1
    table.empty += lab.store.cursor() is None
    why = lab.written_wrong(lab.references)
    if why:
        table.wrong.append(why)


def _reorg(lab, rng):
    lab.world.rpc.call("anvil_rollback", [rng.randrange(1, 20)])
    lab.world.grow(rng.randrange(10, 20), lab.size.own_events, rng.random())
    lab.remember()


def _left(lab, requests):
    """About how many requests the next run makes."""
    cursor, head = lab.store.cursor(), lab.world.head()
    return max(1, requests if cursor is None else requests * (head - cursor[0]) // head)


def kill_at(lab, request, delay):
    """Run the command, and kill it so many seconds after its n-th request."""
    killer = _Killer(delay)
    lab.proxy.faults = (*lab.proxy.faults, At(request, killer.strike))
    child = start_command(lab)
    killer.aim(child.pid)
    child.await_end()
    killer.over()
    lab.proxy.faults = lab.proxy.faults[:-1]
    return child.wait()


def start_command(lab):
    """Start the command with short ranges: many transactions, each of which a kill may meet."""
    return lab.forge().start(["index", "run"], command_settings(lab, max_range_blocks=5), lab.home / "output")


class _Killer:
    """Kills one process a moment after it is told to. Until this is over the process must not be reaped."""

    def __init__(self, delay):
        self._delay = delay
        self._aimed = threading.Event()
        self._threads = []

    def aim(self, pid):
        self._pid = pid
        self._aimed.set()

    def strike(self):
        """Begin to kill; the request goes on meanwhile."""
        self._threads.append(threading.Thread(target=self._kill))
        self._threads[-1].start()

    def over(self):
        for thread in self._threads:
            thread.join()

    def _kill(self):
        self._aimed.wait()
        time.sleep(self._delay)
        os.kill(self._pid, signal.SIGKILL)


def command_settings(lab, **changes):
    """The lab's settings as the command reads them."""
    return {name: value for name, value in lab.settings(**changes).model_dump().items() if value is not None}
