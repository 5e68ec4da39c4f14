import signal
import subprocess
import sys

import pytest

from indexer.deployment import load_deployment
from indexer.errors import UnavailableError
from indexer.store.writer import open_writer
from tests.support.chain import unused_url


def test_index_run__on_a_new_home__fills_the_index(busy, run, tmp_path):
    database = tmp_path / "new.sqlite"
    head = busy.world.chain.head().number
    found = run("index", "run", "--database", database)

    assert (found.code, found.err) == (0, "")
    assert found.out.startswith(f"indexed to block {head} of {head}: ")
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


def test_index_run__following__stops_when_asked_to(busy, tmp_path):
    command = [sys.executable, "-c", "from counterfoil.cli.main import main; main()", "index", "run", "--follow"]
    where = ["--home", str(busy.home), "--rpc", busy.world.url, "--database", str(tmp_path / "followed.sqlite")]
    with subprocess.Popen([*command, *where], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = 600
        while not (tmp_path / "followed.sqlite").exists() and process.poll() is None and deadline:
            deadline -= 1
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (0, "")
    assert out.startswith("indexed to block ")


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
    assert "blocks" in found.err
    assert "logs/s" in found.err
    assert "\x1b" not in found.out


def test_index_run__when_the_node_stumbles__tells_of_the_pause(run, tmp_path, monkeypatch):
    def stumble(_settings, *, on_retry, **_):
        on_retry(UnavailableError("The node gave no answer."), 0.5)
        raise UnavailableError("The node gave no answer.")

    monkeypatch.setattr("indexer.service.index_run", stumble)
    found = run("index", "run", "--database", tmp_path / "new.sqlite")

    assert found.code == 2
    assert found.err.splitlines() == [
        "The node gave no answer. Trying again in 0.5 s.",
        "The node gave no answer. Check the RPC, then try again.",
    ]


def test_index_status__of_an_empty_index__says_how_to_fill_it(busy, run, tmp_path):
    with open_writer(tmp_path / "empty.sqlite", load_deployment(busy.home / "deployments" / "31337.json")):
        pass
    found = run("index", "status", "--database", tmp_path / "empty.sqlite")

    assert found.code == 0
    assert "nothing yet: run `counterfoil index run`" in found.out
