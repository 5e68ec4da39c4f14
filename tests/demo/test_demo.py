import json
import os
import signal
import subprocess

import pytest

from tests.demo.conftest import DEMO, ROOT, SESSIONS


def test_demo__at_its_end__has_replayed_every_decision(demo):
    assert f"{SESSIONS} of {SESSIONS} decisions replayed by state and by index, 0 mismatches" in demo.output


def test_demo__on_its_way__loses_a_session_to_a_reorg(demo):
    assert "a reorg of depth 3 replaced session 0x" in demo.output


def test_demo__of_the_whale__says_that_it_got_nothing(demo):
    (line,) = [line for line in demo.output.splitlines() if " whale " in line]
    assert line.split() == ["6", "whale", "data:crypto-price", "400,000", "4000", "-", "0", "0", "0.0%", "0.0%"]


def test_demo__prints_one_receipt__whole(demo):
    start = demo.output.index("{\n")
    receipt, _ = json.JSONDecoder().raw_decode(demo.output[start:])
    assert receipt["algorithm"] == "oum-1"
    assert receipt["choice"] == receipt["order"][receipt["attempt"]]


def test_demo__of_a_folder_that_is_somebody_elses__removes_nothing(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    ran = subprocess.run(
        [*DEMO, "--home", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert ran.returncode == 2
    assert "is not the demo's" in ran.stderr
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_verify_deployment__of_the_demos_chain__verifies_all_seven_contracts(demo):
    rpc = demo.environment["COUNTERFOIL_RPC_URL"]
    ran = demo.run(["ape", "run", "verify_deployment", "-v", "WARNING", "--network", rpc, "--home", str(demo.home)])
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("verified") == 7


def test_verify_deployment__with_a_changed_argument__names_the_contract(demo, tmp_path):
    path = tmp_path / "deployments" / "31337.json"
    path.parent.mkdir()
    document = json.loads((demo.home / "deployments" / "31337.json").read_text())
    document["contracts"]["NodeRegistry"]["arguments"]["min_stake"] = "1"
    path.write_text(json.dumps(document))
    rpc = demo.environment["COUNTERFOIL_RPC_URL"]
    ran = demo.run(["ape", "run", "verify_deployment", "-v", "WARNING", "--network", rpc, "--home", str(tmp_path)])
    assert ran.returncode == 1
    (line,) = [line for line in ran.stdout.splitlines() if "verified" not in line]
    assert line.startswith("NodeRegistry")
    assert "arguments on chain are not those of the deployment file" in line


def test_verify_deployment__without_a_deployment__says_what_to_do(demo, tmp_path):
    rpc = demo.environment["COUNTERFOIL_RPC_URL"]
    ran = demo.run(["ape", "run", "verify_deployment", "-v", "WARNING", "--network", rpc, "--home", str(tmp_path)])
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "deploy with `ape run deploy`" in ran.stderr


def test_deploy__over_a_deployment_that_the_chain_runs__refuses_and_writes_nothing(demo):
    path = demo.home / "deployments" / "31337.json"
    before = path.read_text()
    rpc = demo.environment["COUNTERFOIL_RPC_URL"]
    ran = demo.run(
        ["ape", "run", "deploy", "-v", "WARNING", "--network", rpc, "--account", "TEST::0", "--home", str(demo.home)]
    )
    assert ran.returncode == 2
    assert "move it away to deploy others" in ran.stderr
    assert path.read_text() == before


def test_deploy__where_no_node_answers__says_what_to_do(demo, tmp_path):
    ran = demo.run(
        ["ape", "run", "deploy", "--network", "http://127.0.0.1:9", "--account", "TEST::0", "--home", str(tmp_path)]
    )
    assert ran.returncode == 2
    assert "no node answers at http://127.0.0.1:9; start one" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_demo__told_to_end_in_mid_play__leaves_nothing_running(tmp_path):
    home = tmp_path / "home"
    command = [*DEMO, "--sessions", "5000", "--home", str(home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as playing:
        for line in playing.stdout:
            if line.startswith("Ready"):
                break
        started = json.loads((home / "processes.json").read_text())
        playing.terminate()
        playing.communicate(timeout=60)
    assert playing.returncode == 128 + signal.SIGTERM
    assert {"chain", "index", "node-1", "service-data-good"} <= set(started)
    for pid in started.values():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not (home / "processes.json").exists()


def test_demo__beside_settings_of_its_user__touches_nothing_they_name(tmp_path):
    ours = {
        "COUNTERFOIL_DATABASE": str(tmp_path / "mine.sqlite"),
        "COUNTERFOIL_DEPLOYMENT": str(tmp_path / "mine.json"),
    }
    command = [*DEMO, "--sessions", "2", "--home", str(tmp_path / "home")]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=200, env={**os.environ, **ours}
    )
    assert ran.returncode == 0, ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]
