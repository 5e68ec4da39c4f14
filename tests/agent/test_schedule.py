"""Recurring runs: when they are due, what is kept of them, and what was missed. No test waits for a time of day."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from counterfoil.agent import schedule
from counterfoil.agent.journal import Journal
from counterfoil.agent.schedule import BusySchedulesError, Schedules, cron, every
from indexer.errors import UserError
from tests.api.test_services import PATIENCE, wait_until
from tests.support.market import market

PROGRAM = [sys.executable, "-c", "from counterfoil.cli.main import main; main()"]
SUNDAY = datetime(2026, 1, 4, 12, tzinfo=UTC)
WORKFLOW = """
name: price
steps:
  - {id: price, category: "data:crypto-price", input: {symbol: BTC}}
"""


def kept(path):
    with Schedules(path, lambda _: None) as schedules:
        return schedules.entries()


def keep(path, schedule_id, when, due_at=None, file="brief.yaml"):
    """Keep a schedule as if its first run had been due then."""
    if due_at is not None:
        when.trigger.start_date = due_at
    with Schedules(path, lambda _: None) as schedules:
        schedules.add(schedule_id, path.parent / file, when)
        if due_at is not None:
            schedules._scheduler.modify_job(schedule_id, next_run_time=due_at)


@contextmanager
def serving(path, work, say=lambda _: None):
    """Serve the schedules in a thread until the block ends."""
    stop = threading.Event()
    with Schedules(path, say) as schedules:
        thread = threading.Thread(target=schedules.serve, args=(work, stop))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()


class Made(list):
    """The runs that were made, by the names of their workflow files."""

    def __call__(self, workflow):
        self.append(Path(workflow).name)

    def wait_for(self, *names):
        wait_until(lambda: set(names) <= set(self))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent" / "schedules.sqlite"


def minutes_ago(count):
    return datetime.now(UTC) - timedelta(minutes=count)


# --- when


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86400), ("999999s", 999_999)]
)
def test_every__of_an_interval__is_so_many_seconds(text, seconds):
    when = every(text)
    assert (when.trigger.interval, when.text) == (timedelta(seconds=seconds), f"every {text}")


@pytest.mark.parametrize("text", ["", "30", "0s", "-5s", "1.5h", "5 m", "5w", "1000000s", "5m\n", "٣s"])
def test_every__of_what_is_no_interval__says_what_one_is(text):
    with pytest.raises(UserError, match="is no interval: give a number and s, m, h or d, such as 30s"):
        every(text)


@pytest.mark.parametrize(
    ("field", "days"),
    [
        ("0", "Sun"),
        ("7", "Sun"),
        ("1", "Mon"),
        ("1-5", "Mon Tue Wed Thu Fri"),
        ("5-7", "Sun Fri Sat"),
        ("sat-sun", "Sun Sat"),
        ("Mon,3,FRI", "Mon Wed Fri"),
        ("*/2", "Sun Tue Thu Sat"),
        ("1-5/2", "Mon Wed Fri"),
        ("3/2", "Wed Fri"),
        ("*", "Sun Mon Tue Wed Thu Fri Sat"),
    ],
)
def test_cron__of_days_of_the_week__counts_them_as_crontab_does(field, days):
    trigger, moment, found = cron(f"0 7 * * {field}").trigger, SUNDAY - timedelta(days=1), []
    while moment is not None and moment < SUNDAY + timedelta(days=6, hours=12):
        moment = trigger.get_next_fire_time(None, moment + timedelta(seconds=1))
        found.append(moment)
    assert [f"{one:%a}" for one in found[:-1]] == days.split()
    assert {(one.hour, one.minute, one.tzinfo.utcoffset(None)) for one in found} == {(7, 0, timedelta(0))}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "it has 0 fields"),
        ("* * * *", "it has 4 fields"),
        ("* * * * * *", "it has 6 fields"),
        ("61 * * * *", "is no cron line"),
        ("* 24 * * *", "is no cron line"),
        ("x * * * *", "is no cron line"),
        ("0 7 * * 8", "'8' is no day of the week"),
        ("0 7 * * 5-1", "'5-1' ends before it begins"),
        ("0 7 * * 1,", "'' is no day of the week"),
        ("0 7 1 * 1", "it names days of the month and of the week: make a schedule of each"),
        ("0 0 30 2 *", "is never due: correct its day and month"),
    ],
)
def test_cron__of_what_is_no_line__says_what_is_wrong(line, words):
    with pytest.raises(UserError) as raised:
        cron(line)
    assert words in str(raised.value)


# --- what is kept


def test_entries__of_another_process__are_those_that_were_added_the_next_one_first(path):
    keep(path, "slow", every("2h"))
    keep(path, "fast", every("5m"), file="other.yaml")
    keep(path, "work", cron("0  7 * * 1-5"), datetime(2099, 1, 1, tzinfo=UTC))
    first, second, third = kept(path)
    assert [(one.schedule_id, one.when) for one in (first, second, third)] == [
        ("fast", "every 5m"),
        ("slow", "every 2h"),
        ("work", "cron 0 7 * * 1-5 (UTC)"),
    ]
    assert (first.workflow, third.next_run) == (str(path.parent / "other.yaml"), "2099-01-01T00:00:00+00:00")


def test_add__of_a_schedule_that_is_kept__changes_it(path):
    keep(path, "brief", every("5m"))
    keep(path, "brief", cron("0 7 * * *"), file="new.yaml")
    (entry,) = kept(path)
    assert (entry.when, entry.workflow) == ("cron 0 7 * * * (UTC)", str(path.parent / "new.yaml"))


def test_add__beyond_the_bound__is_refused_and_a_change_is_not(path, monkeypatch):
    monkeypatch.setattr(schedule, "MAX_SCHEDULES", 2)
    keep(path, "a", every("5m"))
    keep(path, "b", every("5m"))
    with pytest.raises(UserError, match="There are 2 schedules: take one out with `counterfoil agent unschedule`"):
        keep(path, "c", every("5m"))
    keep(path, "b", every("7m"))
    assert {one.schedule_id: one.when for one in kept(path)} == {"a": "every 5m", "b": "every 7m"}


@pytest.mark.parametrize("name", ["", "x" * 65, "two\nlines", "\x1b[31m"])
def test_add__with_a_name_that_cannot_be_shown__is_refused(path, name):
    with pytest.raises(UserError, match="is no name of a schedule: give 1 to 64 printable characters"):
        keep(path, name, every("5m"))
    assert kept(path) == []


def test_remove__of_a_schedule__leaves_the_others_and_of_none_says_so(path):
    keep(path, "a", every("5m"))
    keep(path, "b", every("5m"))
    with Schedules(path, lambda _: None) as schedules:
        schedules.remove("a")
        with pytest.raises(UserError, match="There is no schedule 'a': `counterfoil agent schedules` lists them"):
            schedules.remove("a")
    assert [one.schedule_id for one in kept(path)] == ["b"]


def test_entries__of_a_schedule_that_is_overdue__begin_no_run_and_lose_none(path):
    due_at = minutes_ago(5).replace(microsecond=0)
    keep(path, "brief", every("1h"), due_at)
    for _ in range(2):
        assert [one.next_run for one in kept(path)] == [due_at.isoformat()]


# --- runs


def test_serve__of_runs_that_were_due_while_nobody_was_there__makes_one_and_says_so(path):
    keep(path, "brief", every("10m"), minutes_ago(35))
    made, said = Made(), []
    with serving(path, made, said.append):
        made.wait_for("brief.yaml")
    assert made == ["brief.yaml"]
    assert len(said) == 1
    assert said[0].startswith("brief: was due at 20")
    assert said[0].endswith("and nobody was there; one run makes up for it")
    (entry,) = kept(path)
    assert timedelta(0) < datetime.fromisoformat(entry.next_run) - datetime.now(UTC) <= timedelta(minutes=10)


def test_serve__of_a_run_that_is_more_than_an_hour_late__makes_none_and_says_so(path):
    before = minutes_ago(180)
    keep(path, "missed", cron(f"{before.minute} {before.hour} * * *"), before.replace(second=0, microsecond=0))
    keep(path, "due", every("10m"), minutes_ago(1), file="due.yaml")
    made, said = Made(), []
    with serving(path, made, said.append):
        made.wait_for("due.yaml")
    assert made == ["due.yaml"]
    assert [line for line in said if line.startswith("missed:")] == [
        f"missed: was due at {before:%Y-%m-%dT%H:%M:00+00:00} and nobody was there; that is too long ago for a run"
    ]
    (missed,) = [one for one in kept(path) if one.schedule_id == "missed"]
    assert datetime.fromisoformat(missed.next_run) > datetime.now(UTC)


def test_serve__of_a_short_interval_after_a_year__catches_up_at_once(path):
    keep(path, "brief", every("1s"), minutes_ago(366 * 24 * 60))
    made = Made()
    with serving(path, made):
        made.wait_for("brief.yaml")


def test_serve__after_a_run_that_failed__makes_the_next(path):
    keep(path, "bad", every("1h"), minutes_ago(2), file="bad.yaml")
    keep(path, "good", every("1h"), minutes_ago(1), file="good.yaml")
    made = Made()

    def work(workflow):
        made(workflow)
        if "bad" in workflow:
            raise RuntimeError("broken on purpose")

    with serving(path, work):
        made.wait_for("good.yaml")
    assert made == ["bad.yaml", "good.yaml"]
    assert {one.schedule_id for one in kept(path)} == {"bad", "good"}


def test_serve__while_a_run_takes_longer_than_its_interval__leaves_the_next_out_and_says_so(path):
    keep(path, "brief", every("1s"), minutes_ago(1))
    begun, left_out = threading.Event(), threading.Event()

    def work(_):
        begun.set()
        assert left_out.wait(PATIENCE)

    def say(sentence):
        if sentence == "brief: a run is left out, since the one before is not done":
            left_out.set()

    with serving(path, work, say):
        assert begun.wait(PATIENCE)
        assert left_out.wait(PATIENCE)


def test_serve__beside_another_process_that_serves__is_refused_and_its_schedules_are_taken_up(path):
    made = Made()
    with serving(path, made):
        keep(path, "late", every("1h"), minutes_ago(1), file="late.yaml")
        made.wait_for("late.yaml")
        with (
            Schedules(path, lambda _: None) as other,
            pytest.raises(BusySchedulesError, match="Another process makes the runs of these schedules"),
        ):
            other.serve(made, threading.Event())
    assert made == ["late.yaml"]


def test_serve__that_is_stopped_in_a_run__ends_after_it_and_says_what_is_left_out(path):
    keep(path, "first", every("1h"), minutes_ago(2), file="first.yaml")
    keep(path, "second", every("1h"), minutes_ago(1), file="second.yaml")
    made, said, stop = Made(), [], threading.Event()

    def work(workflow):
        stop.set()
        made(workflow)

    with Schedules(path, said.append) as schedules:
        schedules.serve(work, stop)
    assert made == ["first.yaml"]
    assert said[-1] == f"{path.parent / 'second.yaml'}: a run is left out, since this process ends"


# --- the command


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with market(tmp_path_factory.mktemp("schedule")) as built:
        built.node("olga", price=100)
        yield built


def test_schedule__of_the_real_command__makes_runs_until_it_is_ended_and_goes_on_when_started_again(scene, tmp_path):
    workflow = tmp_path / "price.yaml"
    workflow.write_text(WORKFLOW)
    scene.follow()
    home = scene.settings.home
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERFOIL_")} | {
        "COUNTERFOIL_HOME": str(home),
        "COUNTERFOIL_RPC_URL": scene.world.url,
        "COUNTERFOIL_AGENT_ALLOW_PRIVATE": "yes",
        "COUNTERFOIL_PRIVATE_KEY": "0x" + bytes(scene.world.by("alice").account.key).hex(),
    }
    journal = Journal(home / "agent" / "journal.sqlite")

    def served_until(count, *words):
        command = [*PROGRAM, "agent", "schedule", *words, "--yes"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                wait_until(lambda: ended(journal) >= count or process.poll() is not None)
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
        assert (process.returncode, err) == (0, "")
        return " ".join(out.split())

    first = served_until(2, str(workflow), "--every", "1s", "--id", "often")
    assert first.startswith(f"often: {workflow}, every 1s, next 20")
    assert "Stopped. The schedules are kept: go on with `counterfoil agent schedule`." in first
    before = ended(journal)
    assert [(one.schedule_id, one.when) for one in kept(home / "agent" / "schedules.sqlite")] == [("often", "every 1s")]
    served_until(before + 1)
    assert {run.status for run in journal.runs(100)} == {"done"}


def ended(journal):
    return sum(run.status != "running" for run in journal.runs(100))
