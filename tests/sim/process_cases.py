"""Cases of the process and its database: a full disk, a lock, a crash of the server, a second writer, an end by signal.

Kills are in `kills`.
"""

import signal
import sqlite3
import threading
from contextlib import closing, contextmanager
from functools import partial

import psycopg

from tests.sim.case import Case
from tests.sim.disks import mountable, small_disk
from tests.sim.kills import command_settings
from tests.sim.lab import Outcome, Verdict, is_sentence
from tests.sim.node_faults import At
from tests.sim.stores import Crash

MOMENT = 0.3
"""Seconds for which a database is locked where it is let go again."""
PATIENCE = 120
"""Seconds after which a command that still waits for a lock is said to hang; each of its attempts may wait for some."""
DISK = 64 * 2**20
RESTART_SECONDS = 60


def command(lab, *, max_file_bytes=None, **settings):
    """Run `counterfoil index run` as a process of its own."""
    given = command_settings(lab, **settings)
    return lab.forge().start(["index", "run"], given, lab.home / "output", max_file_bytes).wait()


def refusal(ended):
    """Say what is wrong with how a command refused; empty where it is as it should be."""
    last = ended.err.strip().splitlines()[-1:] or [""]
    if ended.code != 2 or "Traceback" in ended.err or not last[0].endswith((".", "!", "?")):
        return f"exit code {ended.code}, not 2 with a sentence: {ended.err[-300:]!r}"
    return ""


def refused_then_exact(lab, ended, run):
    """The command refused with a sentence, had written nothing wrong, and goes on once the cause is gone."""
    why = refusal(ended) or lab.written_wrong(lab.references)
    return Verdict(Outcome.WRONG, why) if why else lab.judge(run())


def full_by_file_size(lab):
    limit = lab.rng.randrange(2**17, 2**18)
    ended = command(lab, max_file_bytes=limit, max_range_blocks=5)
    return refused_then_exact(lab, ended, lab.run)


def full_disk(lab):
    """Another program fills the disk while the index is written, and then removes its file."""
    with small_disk(lab.home / "disk", DISK) as fill, lab.stores.at(lab.home / "disk") as lab.store:
        filled = At(lab.rng.randrange(10, 20), fill)
        lab.proxy.inject(filled)
        ended = command(lab, max_range_blocks=5)
        if filled.left > 0:
            return Verdict(Outcome.WRONG, "the disk was not filled in time")
        fill.undo()
        return refused_then_exact(lab, ended, lab.run)


# --- locks


def locked_for_a_moment(lab):
    """Another program holds the tables while the index writes, and lets go."""
    holding = []

    def hold():
        held = _sqlite_lock(lab) if lab.store.kind == "sqlite" else _postgres_lock(lab)
        release = held.__enter__()
        thread = threading.Thread(target=lambda: (release(), held.__exit__(None, None, None)))
        holding.append(thread)
        thread.start()

    lab.proxy.inject(At(lab.rng.randrange(8, 16), hold))
    error = lab.run(max_range_blocks=20)
    for thread in holding:
        thread.join()
    return lab.judge(error) if holding else Verdict(Outcome.WRONG, "nothing was locked")


def locked_for_good(lab):
    """Another program holds the tables and does not let go; afterwards the index goes on."""
    ended, locks = [], []
    over = threading.Event()

    def hold():
        held = _sqlite_lock(lab) if lab.store.kind == "sqlite" else _postgres_lock(lab)
        held.__enter__()
        locks.append(held)

    lab.proxy.inject(At(lab.rng.randrange(8, 16), hold))
    thread = threading.Thread(target=lambda: (ended.append(lab.run(max_range_blocks=20)), over.set()))
    thread.start()
    hung = not over.wait(PATIENCE)
    for held in locks:
        held.__exit__(None, None, None)
    thread.join()
    if hung:
        return Verdict(Outcome.WRONG, f"still waits after {PATIENCE} s, without a sentence")
    return right_after(lab, ended[0])


@contextmanager
def _sqlite_lock(lab):
    with closing(sqlite3.connect(lab.store.path, timeout=30, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield partial(threading.Event().wait, MOMENT)
        other.execute("ROLLBACK")


@contextmanager
def _postgres_lock(lab):
    with psycopg.connect(lab.store.url) as other:
        other.execute("LOCK TABLE block IN ACCESS EXCLUSIVE MODE")
        yield partial(_await_waiting, lab.store)
        other.rollback()


def _await_waiting(store):
    while not store.query("SELECT 1 FROM pg_locks WHERE NOT granted"):
        pass


# --- others


def crashed_server(lab):
    """The database's server loses a process, ends all connections, and recovers."""
    crash = Crash(lab.store)
    lab.proxy.inject(At(lab.rng.randrange(8, 16), crash.strike))
    error = lab.run(max_range_blocks=10)
    crash.await_recovery()
    return right_after(lab, error)


def restarted_server(lab):
    """The database's server is ended and started again between two writes."""
    over = threading.Event()

    def restart():
        lab.stores.restart()
        over.set()

    lab.proxy.inject(At(lab.rng.randrange(8, 16), restart))
    error = lab.run(max_range_blocks=10)
    over.wait(RESTART_SECONDS)  # who gives up the request need not wait for its answer
    return right_after(lab, error)


def right_after(lab, error):
    """Nothing wrong was written, whatever ended the run, and the next one comes to the end."""
    if error is not None and not is_sentence(error):
        return Verdict(Outcome.WRONG, f"no sentence: {type(error).__name__}: {error}")
    why = lab.written_wrong(lab.references)
    return Verdict(Outcome.WRONG, why) if why else lab.judge(lab.run())


def second_writer(lab):
    with lab.following() as running:
        running.arrive(lab.world.hash_at())
        ended = command(lab)
    why = refusal(ended) or ("" if "nother process writes" in ended.err else f"other words: {ended.err}")
    return Verdict(Outcome.WRONG, why) if why else lab.judge(running.error)


def ended_by_signal(lab):
    """SIGTERM in mid-run ends the command in order, with the rows of some block."""
    children = []
    happens = At(lab.rng.randrange(15, 30), lambda: children[0].signal(signal.SIGTERM))
    lab.proxy.inject(happens)
    given = command_settings(lab, max_range_blocks=5)
    with lab.proxy.lock:  # no request passes before the process is known
        children.append(lab.forge().start(["index", "run"], given, lab.home / "output"))
    ended = children[0].wait()
    if ended.code != 0 or "Traceback" in ended.err:
        return Verdict(Outcome.WRONG, f"exit code {ended.code}: {ended.err[-300:]}")
    why = lab.written_wrong(lab.references) or ("" if happens.left <= 0 else "it ended before the signal")
    return Verdict(Outcome.WRONG, why) if why else lab.judge(lab.run())


def _case(name, play, *stores, long=False):
    return Case(name, "process", play, stores=stores or ("sqlite", "postgresql"), long=long)


CASES = [
    _case("disk full (a limit of file sizes), then not", full_by_file_size, "sqlite"),
    *([_case("disk full (a small tmpfs), then not", full_disk)] if mountable() else []),
    _case("database locked for a moment", locked_for_a_moment),
    _case("database locked for good, then not", locked_for_good, long=True),
    _case("database server crashed and recovered", crashed_server, "postgresql"),
    _case("database server restarted", restarted_server, "postgresql"),
    _case("a second writer started", second_writer),
    _case("SIGTERM", ended_by_signal),
]
