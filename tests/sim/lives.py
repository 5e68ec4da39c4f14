"""kill -9 of agent and nodes at random instants of real runs: afterwards every unit of money is where it has to be.

The instants are drawn over the whole length of a run as it was measured, so that they fall into every phase of it.
"""

import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.lives import NotRightError, killed, lives

FAULTS = ("agent killed", "node killed", "both killed")
AGAIN_SHARE = 0.3
"""How often the agent is killed once more while it resumes."""


@dataclass
class Killed:
    """What the table says of a fault: how runs ended whose agent or node was killed, and what was lost by it."""

    fault: str
    seed: object
    kills: int = 0
    done: int = 0
    failed: int = 0
    """Runs that could not be done, since both nodes were down: they say so, and paid for what was served alone."""
    lost: int = 0
    """Base units."""
    wrong: list = field(default_factory=list)


def end_lives(fault, count, seed):
    """Kill so many times on a market of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="counterfoil-lives-") as folder,
        lives(Path(folder), f"{fault}/{seed}") as on,
    ):
        return kill_on(on, fault, count, seed)


def kill_on(on, fault, count, seed):
    """Kill so many times on this market; ends sooner where something is not as it has to be."""
    table = Killed(fault, seed)
    length = on.length()
    before = {run.run_id for run in on.books.runs()}
    while table.kills < count and not table.wrong:
        try:
            _one(on, fault, length, table)
            table.wrong += on.wrong()
        except NotRightError as error:
            table.wrong.append(str(error))
    ends = [run.status for run in on.books.runs() if run.run_id not in before]
    table.done, table.failed, table.lost = ends.count("done"), ends.count("failed"), on.books.lost()
    return table


def _one(on, fault, length, table):
    """One run with its kills: of the agent, of a node that is started again at once, or of both."""
    kills_agent, kills_node = fault != "node killed", fault != "agent killed"
    agent_at, node_at = on.rng.uniform(0, length), on.rng.uniform(0, length)
    node = on.rng.choice(on.nodes)
    child = on.start()
    striker = threading.Thread(target=_kill_node, args=(node, node_at, table))
    if kills_node:
        striker.start()
    ended = killed(child, agent_at) if kills_agent else child.wait()
    if kills_node:
        striker.join()
    table.kills += 1
    if "Traceback" in ended.err:
        table.wrong.append(f"a traceback: {ended.err[-500:]}")
    on.resume(on.rng.uniform(0, length) if kills_agent and on.rng.random() < AGAIN_SHARE else None)


def _kill_node(node, at, table):
    threading.Event().wait(at)
    try:
        node.kill()
    except NotRightError as error:
        table.wrong.append(str(error))
