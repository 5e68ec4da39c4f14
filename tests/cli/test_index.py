import json
import re
import signal
import subprocess
import sys

import httpx
import pytest
from click.testing import CliRunner

from counterfoil.cli.main import main
from indexer.deployment import load_deployment
from indexer.errors import UnavailableError, WrongChainError
from indexer.notices import Retried
from indexer.service import index_plan
from indexer.settings import Settings, flag_of
from indexer.store.writer import open_writer
from tests.support.chain import unused_url


def test_index_run__on_a_new_home__fills_the_index(busy, run, tmp_path):
    database = tmp_path / "new.sqlite"
    head = busy.world.chain.head().number
    found = run("index", "run", "--database", database)

    assert found.code == 0
    assert found.out.startswith(f"indexed to block {head} of {head}: ")
    assert found.err.splitlines() == [
        f"Indexing chain 31337 from block {busy.first_block} into {database}, up to its head; asking {busy.world.url}.",
        f"Writing to {database}.",
        f"Caught up with the chain at block {head}.",
    ]
    again = run("index", "run", "--database", database, "--json")
    assert (again.json["block"], again.json["logs"], again.json["reorgs"]) == (head, 0, 0)
    same = run("index", "verify", "--against", database)
    assert (same.code, same.out.startswith("both indexes agree over blocks ")) == (0, True)


@pytest.mark.parametrize("fault", ["dead rpc", "wrong chain", "no deployment"])
def test_index_run__with_nothing_to_index__exits_2_and_writes_nothing(busy, run, tmp_path, fault):
    database = tmp_path / "new.sqlite"
    options = {"rpc": unused_url()} if fault == "dead rpc" else {}
    more = []
    if fault == "no deployment":
        options = {"home": tmp_path / "empty"}
    if fault == "wrong chain":
        text = (busy.home / "deployments" / "31337.json").read_text()
        (tmp_path / "other.json").write_text(text.replace('"chain_id": 31337', '"chain_id": 1'))
        more = ["--deployment", tmp_path / "other.json"]
    found = run("index", "run", "--database", database, *more, **options)

    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1
    assert not database.exists()
    assert not (tmp_path / "empty").exists()


def test_index_run__following_a_node_that_is_not_there__says_so_and_waits_for_it(busy, tmp_path):
    command = [sys.executable, "-c", "from counterfoil.cli.main import main; main()", "index", "run", "--follow"]
    where = ["--home", str(busy.home), "--rpc", unused_url(), "--database", str(tmp_path / "followed.sqlite")]
    with subprocess.Popen([*command, *where], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        told = [process.stderr.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert "Waiting for a node of that chain: " in told[0]
    assert told[1].startswith("Writing to ")
    assert "does not answer" in told[2]


def test_index_run__following__stops_when_asked_to(busy, tmp_path):
    command = [sys.executable, "-c", "from counterfoil.cli.main import main; main()", "index", "run", "--follow"]
    where = ["--home", str(busy.home), "--rpc", busy.world.url, "--database", str(tmp_path / "followed.sqlite")]
    with subprocess.Popen([*command, *where], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        told = [process.stderr.readline()]
        while told[-1] and not told[-1].startswith("Caught up with the chain"):
            told.append(process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)

    assert process.returncode == 0
    assert out.startswith("indexed to block ")
    assert "following it from then on" in told[0]


def test_index_status__of_an_index__says_how_far_it_is(busy, run):
    found = run("index", "status")

    assert found.code == 0
    assert f"block {busy.world.chain.head().number} (0x" in found.out
    assert run("index", "status", "--json").json["status"]["sessions"] == 18


def test_index_status__without_an_index__exits_2_with_the_next_step(run, tmp_path):
    found = run("index", "status", home=tmp_path)

    assert (found.code, found.out) == (2, "")
    assert found.err.endswith("build it with `counterfoil index run`.\n")


def test_index_rebuild__of_an_edited_index__mends_it(busy, run, tmp_path):
    edited = busy.edited(tmp_path, "UPDATE node_stake SET stake = 5 WHERE node_id = 1")
    assert run("audit", "session", 1, "--database", edited).code == 1
    rebuilt = run("index", "rebuild", "--database", edited)

    assert (rebuilt.code, rebuilt.out.startswith("rebuilt ")) == (0, True)
    assert run("audit", "session", 1, "--database", edited).code == 0
    assert run("index", "rebuild", "--database", edited, "--json").json["quarantined"] == 0


def test_index_verify__against_a_different_index__exits_1_and_names_the_block(busy, run, tmp_path):
    edited = busy.edited(tmp_path, f"UPDATE block SET digest = '0x{'00' * 32}' WHERE number >= 40")
    found = run("index", "verify", "--against", edited)

    words = f"the rows of {edited} do not match its own digest: run `counterfoil index rebuild` on it"
    assert (found.code, found.err) == (1, "")
    assert found.out.replace("\n", "").replace(" ", "") == (
        f"the indexes differ from block 40 on: {words}".replace(" ", "")
    )
    document = run("index", "verify", "--against", edited, "--json").json
    assert (document["differs_at"], document["why"]) == (40, words)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE node_stake SET stake = 5 WHERE node_id = 1",
        "DELETE FROM session",
        "DELETE FROM raw_log WHERE topics LIKE '%,%,%'",
    ],
)
def test_index_verify__against_an_index_edited_by_hand__exits_1(busy, run, tmp_path, statement):
    edited = busy.edited(tmp_path, statement)

    assert run("index", "verify", "--against", edited).code == 1
    assert run("index", "verify", "--against", busy.database, "--database", edited).code == 1


def test_index_run__on_a_terminal__shows_blocks_and_speed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    found = run("index", "run", "--database", tmp_path / "new.sqlite")

    assert found.code == 0
    assert "indexing" in found.err
    assert re.search(r"block [\d,]+ of [\d,]+ \(100%\), [\d,]+ logs/s", found.err)
    assert "\x1b" not in found.out


def test_index_run__when_the_node_stumbles__tells_of_the_pause(run, tmp_path, monkeypatch):
    def stumble(_settings, _follow, observer, **_):
        observer(Retried(UnavailableError("The node gave no answer."), 0.5))
        raise UnavailableError("The node gave no answer.")

    monkeypatch.setattr("indexer.service.index_run", stumble)
    found = run("index", "run", "--database", tmp_path / "new.sqlite")

    assert found.code == 2
    assert found.err.splitlines()[1:] == [
        "The node gave no answer. Trying again in 0.5 s.",
        "The node gave no answer. Check the RPC, then try again.",
    ]


def test_index_status__of_an_empty_index__says_how_to_fill_it(busy, run, tmp_path):
    with open_writer(tmp_path / "empty.sqlite", load_deployment(busy.home / "deployments" / "31337.json")):
        pass
    found = run("index", "status", "--database", tmp_path / "empty.sqlite")

    assert found.code == 0
    assert "nothing yet: run `counterfoil index run`" in found.out


# --- settings, logs and the hand-over


class Running:
    """`counterfoil index run` as a process; its JSON log is read as it comes."""

    def __init__(self, *arguments):
        program = "from counterfoil.cli.main import main; main()"
        command = [sys.executable, "-c", program, "index", "run", "--log-format", "json", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def until(self, event):
        """Read the log up to an event, and give it."""
        for line in self.process.stderr:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == event:
                return self.events[-1]
        raise AssertionError(f"ended without {event}: {self.events}")

    def end(self, how):
        self.process.send_signal(how)
        for line in self.process.stderr:
            self.events.append(json.loads(line))
        return self.process.wait(60)


def answers(url):
    """What a running index says of itself."""
    with httpx.Client(trust_env=False) as client:
        return client.get(f"{url}/ready"), client.get(f"{url}/status").json()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_index_run__standing_by_for_a_writer__takes_over_when_that_ends(busy, run, tmp_path, how):
    database = tmp_path / "shared.sqlite"
    where = ["--home", busy.home, "--rpc", busy.world.url, "--database", database, "--follow", "--listen", "0"]
    head = busy.world.chain.head().number
    with Running(*where) as first:
        assert first.until("caught_up")["block"] == head
        refused = run("index", "run", "--database", database)
        assert (refused.code, refused.out) == (2, "")
        assert f"(process {first.process.pid} on " in refused.err
        with Running(*where, "--wait") as second:
            url = second.until("listening")["url"]
            assert second.until("standing_by")["holder"].startswith(f"process {first.process.pid} on ")
            ready, status = answers(url)
            assert (ready.status_code, ready.json()["why"]) == (503, f"standing by for {second.events[-1]['holder']}")
            assert status["writer"] is None
            assert first.end(how) == (0 if how == signal.SIGTERM else -signal.SIGKILL)
            second.until("writing")
            assert second.until("caught_up")["block"] == head
            ready, status = answers(url)
            assert (ready.status_code, status["writer"]["pid"]) == (200, second.process.pid)
            assert second.end(signal.SIGTERM) == 0
    if how == signal.SIGTERM:
        assert (first.events[-1]["event"], first.events[-1]["block"]) == ("stopped", head)
    assert run("index", "verify", "--against", database).code == 0


def test_index_run__stopped_while_standing_by__ends_in_order(busy, tmp_path):
    database = tmp_path / "held.sqlite"
    deployment = load_deployment(busy.home / "deployments" / "31337.json")
    with open_writer(database, deployment):
        where = ["--home", busy.home, "--rpc", busy.world.url, "--database", database, "--wait"]
        with Running(*where) as waiting:
            waiting.until("standing_by")
            assert waiting.end(signal.SIGTERM) == 0
    assert waiting.events[-1]["message"] == "stopped while standing by; nothing was written"


def test_index_run__with_json_logs__writes_one_object_a_line_and_no_secret(busy, tmp_path):
    database = tmp_path / "new.sqlite"
    rpc = busy.world.url.replace("http://", "http://user:secret@") + "/?key=secret"
    arguments = ["--home", str(busy.home), "--rpc-url", rpc, "--database", str(database), "--log-format", "json"]
    found = CliRunner(mix_stderr=False).invoke(main, ["index", "run", "--json", *arguments])

    assert found.exit_code == 0, found.stderr
    events = [json.loads(line) for line in found.stderr.splitlines()]
    assert [event["event"] for event in events] == ["starting", "writing", "caught_up", "stopped"]
    head = busy.world.chain.head().number
    assert events[0]["providers"] == [busy.world.url]
    assert (events[0]["chain_id"], events[0]["database"]) == (31337, str(database))
    assert (events[2]["block"], events[2]["head"], events[3]["logs"]) == (head, head, json.loads(found.stdout)["logs"])
    assert all(list(event)[:3] == ["timestamp", "level", "event"] for event in events)
    assert "secret" not in found.output + found.stderr


def test_index_run__with_json_logs__ends_a_failure_in_json_too(busy, tmp_path):
    arguments = ["--home", str(busy.home), "--rpc", unused_url(), "--log-format", "json"]
    found = CliRunner(mix_stderr=False).invoke(main, ["index", "run", *arguments])

    assert (found.exit_code, found.stdout) == (2, "")
    (event,) = [json.loads(line) for line in found.stderr.splitlines()]
    assert (event["level"], event["event"], event["error"]) == ("error", "failed", "UnavailableError")
    assert "is the node running?" in event["message"]


def test_index_run__with_a_file_and_flags__is_as_the_flags_say(busy, tmp_path):
    (tmp_path / "index.toml").write_text(
        f'home = "{busy.home}"\nrpc_url = "{unused_url()}"\nverify = "full"\nmax_range_blocks = 7\n'
    )
    database = tmp_path / "new.sqlite"
    arguments = ["--config", str(tmp_path / "index.toml"), "--rpc-url", busy.world.url, "--database", str(database)]
    found = CliRunner(mix_stderr=False).invoke(main, ["index", "run", *arguments])

    assert (found.exit_code, database.exists()) == (0, True), found.stderr


def test_index_run__of_its_help__offers_every_setting_of_an_index():
    found = CliRunner().invoke(main, ["index", "run", "--help"])

    flags = set(re.findall(r"--[a-z-]+", found.output))
    others = ("--api", "--node-", "--agent-")
    assert {flag for name in Settings.model_fields if not (flag := flag_of(name)).startswith(others)} <= flags
    assert not any(flag.startswith(others) for flag in flags)
    assert not any("key" in flag or "password" in flag for flag in flags)


def test_index_run__with_variables_of_others__says_that_it_ignores_them(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_SERVICE_HOST", "10.0.0.1")
    found = run("index", "run", "--database", tmp_path / "new.sqlite")

    assert found.code == 0
    assert found.err.splitlines()[0] == "These are no settings, and ignored: COUNTERFOIL_SERVICE_HOST."


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_index_plan__with_a_node_down_and_one_of_another_chain__waits_for_the_first_alone(busy, tmp_path, order):
    text = (busy.home / "deployments" / "31337.json").read_text()
    (tmp_path / "other.json").write_text(text.replace('"chain_id": 31337', '"chain_id": 1'))
    urls = [unused_url(), busy.world.url]
    settings = Settings(rpc_url=",".join(urls[at] for at in order), deployment=tmp_path / "other.json")
    with pytest.raises(UnavailableError, match="does not answer"):
        index_plan(settings)
    assert "does not answer" in index_plan(settings, follow=True).waiting
    with pytest.raises(WrongChainError):
        index_plan(settings.model_copy(update={"rpc_url": busy.world.url}), follow=True)
