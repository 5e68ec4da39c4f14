"""The demo's story: agents choose, open, call, settle, rate and attest, while a reorg happens on the way."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from threading import Lock

from counterfoil.agent.calling import one_step
from counterfoil.agent.desk import Desk, desk
from counterfoil.agent.record import RunRecord, record_of
from counterfoil.agent.runner import Runner
from counterfoil.agent.workflow import Workflow
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.chain.connection import Chain, connect
from counterfoil.demo.cast import AGENTS, CALLS, ERRANDS, agent_account
from counterfoil.demo.stage import Stage
from indexer.query import Store

REORG_DEPTH = 3
SAY_EVERY = 10


class Tickets:
    """How many sessions may still be opened, shared by all agents."""

    def __init__(self, total: int) -> None:
        self._left = total
        self._lock = Lock()

    def take(self) -> bool:
        """Take one; False when none is left."""
        with self._lock:
            taken = self._left > 0
            self._left -= taken
        return taken

    def void(self) -> None:
        """Let nobody take any more."""
        with self._lock:
            self._left = 0

    def give_back(self) -> None:
        """A session that a reorg took away does not count."""
        with self._lock:
            self._left += 1


class Story:
    """Plays so many sessions; `say` hears of the progress."""

    def __init__(self, stage: Stage, store: Store, say: Callable[[str], None]) -> None:
        self._stage = stage
        self._store = store
        self._say = say
        self._opened = 0
        self._lock = Lock()

    def play(self, sessions: int) -> list[RunRecord]:
        """Play half of the sessions, one with a reorg under it, and the rest."""
        before = sessions // 2
        records = self._play_together(before)
        if sessions > before:
            records.append(self._play_reorg())
        return records + self._play_together(sessions - before - 1)

    def _play_together(self, sessions: int) -> list[RunRecord]:
        """Play until so many more sessions are opened: a draw that the moving chain refuses opens none."""
        until, records = self._opened + sessions, list[RunRecord]()
        while self._opened < until:
            records += self._play_round(until - self._opened)
        return records

    def _play_round(self, sessions: int) -> list[RunRecord]:
        tickets = Tickets(sessions)
        with ThreadPoolExecutor(AGENTS) as pool:
            played = pool.map(lambda position: self._play_agent(position, tickets), range(AGENTS))
            try:
                return [record for records in played for record in records]
            except BaseException:
                # The pool waits for its threads: an interrupt must not wait for all the sessions that are left.
                tickets.void()
                raise

    def _play_agent(self, position: int, tickets: Tickets) -> list[RunRecord]:
        with closing(connect(self._stage.settings)) as chain:
            agent = self._desk(chain, position)
            runner = Runner(agent, may_open=tickets.take, opened=self._count)
            records: list[RunRecord] = []
            for turn in count(position):
                record = run(agent, runner, errand(turn))
                if not any(step["sessions"] for step in record["steps"]):
                    return records
                records.append(record)
        return records

    def _play_reorg(self) -> RunRecord:
        """Have the chain replace the block that a session was just opened in, with the snapshot it was chosen on."""
        tickets = Tickets(1)
        reorgs = Tickets(1)
        chain = connect(self._stage.settings)
        request(chain, "anvil_mine", [hex(REORG_DEPTH - 1)])

        def opened(session_id: str) -> None:
            if reorgs.take():
                request(chain, "anvil_reorg", [REORG_DEPTH, []])
                tickets.give_back()
                self._say(f"  a reorg of depth {REORG_DEPTH} replaced session {session_id[:10]}; its agent draws anew")
            else:
                self._count(session_id)

        agent = self._desk(chain, 0)
        return run(agent, Runner(agent, may_open=tickets.take, opened=opened), errand(0))

    def _desk(self, chain: Chain, position: int) -> Desk:
        return desk(self._stage.settings, chain, self._store, agent_account(position))

    def _count(self, _: str) -> None:
        with self._lock:
            self._opened += 1
            if self._opened % SAY_EVERY == 0:
                self._say(f"  {self._opened} sessions opened")


def errand(turn: int) -> Workflow:
    """The workflow of that turn."""
    wanted = ERRANDS[turn % len(ERRANDS)]
    given = wanted.inputs[turn // len(ERRANDS) % len(wanted.inputs)]
    return one_step(
        None,
        category=wanted.category,
        need=wanted.need,
        task=wanted.task,
        tool=wanted.tool,
        input=given,
        calls=CALLS,
    )


def run(agent: Desk, runner: Runner, workflow: Workflow) -> RunRecord:
    """Make one run, and give its record."""
    workflows = WorkflowRunner(agent, runner, lambda _: None)
    return record_of(agent.journal, workflows.go(workflows.start(workflow)))


def request(chain: Chain, method: str, params: list[object]) -> None:
    """Ask the local chain for something that only a development chain does."""
    chain.provider.make_request(method, params)  # type: ignore[arg-type]
