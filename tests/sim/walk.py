"""A seeded walk over sequences of what can happen; at each quiet point the rows must be those of a clean index.

Others were wrong on sequences, not on single cases. The model is the simplest one: nothing is remembered but the chain,
so whatever happened before, an index that has come to its head is a clean index.
"""

import random
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.sim import log_faults as log
from tests.sim import transport_faults as transport
from tests.sim.kills import kill_at
from tests.sim.lab import EXACT, Outcome, Running, Verdict

DEEPEST = 12
QUIET_EVERY = 6
"""Steps between two quiet points."""
FAULTS = (
    log.EveryNthEmpty,
    lambda: log.Cut(5),
    log.Twice,
    log.Shuffled,
    lambda: log.OtherFork(0.5),
    lambda: transport.BadGateway(0.2),
    lambda: transport.CutInBody(0.2),
    lambda: transport.ErrorUnder200(0.2),
    lambda: transport.NullBlock(0.1),
)


@dataclass
class Walk:
    """A walk as the table shows it."""

    store: str
    seed: object
    steps: list = field(default_factory=list)
    quiet_points: int = 0
    verdict: Verdict = EXACT


def walk(stage, kind, steps, seed, verify="full"):
    """Take so many steps; the walk ends at the first quiet point that is wrong, and names its steps."""
    walked = Walk(kind, seed)
    with ExitStack() as stack:
        lab = stage.lab(stack, stage.size, True, kind, f"walk/{seed}", verify)
        walker = _Walker(lab, random.Random(f"walk/{kind}/{seed}"), walked)
        stack.callback(walker.stop)
        while len(walked.steps) < steps and walked.verdict.outcome is Outcome.EXACT:
            for _ in range(QUIET_EVERY):
                walker.step()
            walked.verdict = walker.quiet()
            walked.quiet_points += 1
    return walked


class _Walker:
    def __init__(self, lab, rng, walked):
        self._lab, self._rng, self._walked = lab, rng, walked
        self._running = None
        self._actions = (
            self.mine, self.mine, self.reorg, self.reorg, self.roll_back, self.shrink, self.fault_on, self.fault_off,
            self.start, self.start, self.stop, self.kill, self.let_it_work, self.let_it_work, self.let_it_work,
        )  # fmt: skip

    def step(self):
        action = self._rng.choice(self._actions)
        detail = action()
        self._walked.steps.append(action.__name__ if detail is None else f"{action.__name__} {detail}")

    def quiet(self):
        """No faults, a head that is new, a run to it: then all must be as if nothing had happened."""
        self._lab.proxy.inject()
        self.mine()
        self.start()
        self._running.arrive(self._lab.world.hash_at())
        error = self._running.error
        self._lab.remember()
        verdict = self._lab.judge(error)
        if error is not None:
            self.stop()
        return verdict

    # --- the chain

    def mine(self):
        blocks = self._rng.randrange(1, 4)
        self._lab.world.grow(blocks, 3, self._rng.random())
        return blocks

    def reorg(self):
        depth = self._rng.randrange(1, DEEPEST)
        self._lab.world.reorg(depth)
        return depth

    def roll_back(self):
        """Another branch with events, which may end below, at, or above the old head."""
        depth = self._rng.randrange(1, DEEPEST)
        self._lab.world.rpc.call("anvil_rollback", [depth])
        self._lab.world.grow(self._rng.randrange(1, DEEPEST), 3, self._rng.random())
        return depth

    def shrink(self):
        depth = self._rng.randrange(1, 4)
        self._lab.world.rpc.call("anvil_rollback", [depth])
        return depth

    # --- the node

    def fault_on(self):
        fault = self._rng.choice(FAULTS)()
        self._lab.proxy.inject(fault)
        return fault.name

    def fault_off(self):
        self._lab.proxy.inject()

    # --- the index

    def start(self):
        if self._running is None:
            self._running = Running(self._lab, self._lab.settings(max_range_blocks=self._rng.choice((3, 10, 40))))

    def stop(self):
        if self._running is not None:
            self._running.end()
            self._running = None

    def kill(self):
        """A process of the command, killed at one of its requests."""
        self.stop()
        request = self._rng.randrange(1, 30)
        kill_at(self._lab, request, self._rng.uniform(0, 0.01))
        return request

    def let_it_work(self):
        """So many requests pass."""
        self.start()
        passed = self._rng.randrange(5, 40)
        enough = self._lab.proxy.requests + passed
        self._running.until(lambda: self._lab.proxy.requests >= enough)
        return passed
