"""`counterfoil agent`: what is paid for, what would be, what was, and what stands in the way."""

import json
import logging

import pytest
import structlog
from click.testing import CliRunner

from counterfoil.agent.journal import Journal
from counterfoil.agent.record import record_of
from counterfoil.agent.runner import Runner
from counterfoil.agent.schedule import Schedules, every
from counterfoil.agent.workflow import read
from counterfoil.agent.workflows import WorkflowRunner
from counterfoil.chain.contracts import Write
from counterfoil.chain.keys import OWN
from counterfoil.cli.main import main
from tests.api.test_services import wait_until
from tests.cli.conftest import Ran
from tests.support.chain import CATEGORY, unused_url
from tests.support.market import market

SEARCH = "mcp:web-search"
NOWHERE = "0x000000000000000000000000000000000000dEaD"
WORKFLOW = """
name: two
budget: 5000
steps:
  - {id: price, category: "data:crypto-price", need: "data:crypto", task: spot, input: {symbol: BTC}, calls: 2}
  - {id: again, category: "data:crypto-price", input: {before: "${price.0.echo}"}}
"""
OUTPUT = {"echo": '{"symbol":"BTC"}'}


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Two services of a category, one of another that is down, and an index that follows."""
    with market(tmp_path_factory.mktemp("agents")) as built:
        built.node("olga", price=100)
        built.node("dora", price=100)
        built.node("sven", price=300, category=SEARCH, up=False)
        built.store = built.follow()
        yield built


@pytest.fixture
def agent(scene, monkeypatch):
    """Run a command of `counterfoil agent` with somebody's key or none."""

    # The nodes of this process log too.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

    def command(*words, by=None, home=scene.settings.home, rpc=scene.world.url):
        monkeypatch.delenv(OWN.key, raising=False)
        if by is not None:
            monkeypatch.setenv(OWN.key, "0x" + bytes(scene.world.by(by).account.key).hex())
        monkeypatch.setenv("COUNTERFOIL_HOME", str(home))
        monkeypatch.setenv("COUNTERFOIL_RPC_URL", rpc)
        monkeypatch.setenv("COUNTERFOIL_AGENT_ALLOW_PRIVATE", "yes")
        return Ran(CliRunner(mix_stderr=False).invoke(main, ["agent", *map(str, words)]))

    return command


@pytest.fixture
def workflow(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(WORKFLOW)
    return path


@pytest.fixture
def journal(scene):
    return Journal(scene.settings.home / "agent" / "journal.sqlite")


@pytest.fixture(scope="module")
def ran(scene):
    """A run of alice's that was made, as its record."""
    desk = scene.desk("alice", scene.store)
    workflows = WorkflowRunner(desk, Runner(desk), lambda _: None)
    return record_of(desk.journal, workflows.go(workflows.start(read(WORKFLOW.encode(), "here"))))


def said(text):
    """What was printed, without the breaks of its lines."""
    return " ".join(text.split())


def nonce(scene, name):
    return int(scene.world.rpc("eth_getTransactionCount", scene.world.by(name).address, "latest"), 16)


def services(record):
    return [session["service_id"] for step in record["steps"] for session in step["sessions"]]


# --- run


def test_run__of_a_workflow__prints_each_step_what_it_cost_and_what_it_gave(agent, workflow):
    found = agent("run", workflow, "--yes", by="alice")
    assert (found.code, found.err) == (0, "")
    text = said(found.out)
    assert text.startswith("step price: data:crypto-price step price: served by service ")
    assert "workflow two status done paid 300" in text
    assert "served by service" in text.partition("price, ")[2]
    assert r'{"echo": "{\"before\":\"{\\\"symbol\\\":\\\"BTC\\\"}\"}"}' in text


def test_run__with_json__prints_one_document_and_its_progress_on_stderr(agent, workflow):
    found = agent("run", workflow, "--yes", "--json", by="alice")
    assert found.code == 0
    record = found.json
    assert (record["status"], record["paid"], record["workflow"]) == ("done", "300", "two")
    assert record["steps"][0]["output"] == [OUTPUT, OUTPUT]
    assert found.err.splitlines()[0] == "step price: data:crypto-price"


def test_run__with_dry_run__says_what_it_would_spend_and_where_and_signs_nothing(scene, agent, workflow, journal):
    scene.world.by("alice")
    before = nonce(scene, "alice"), len(journal.runs(1000))
    found = agent("run", workflow, "--dry-run", by="alice")
    assert (found.code, found.err) == (0, "")
    text = said(found.out)
    assert "price: data:crypto-price, up to 200; order " in text
    assert "again: data:crypto-price, up to 100; order " in text
    assert "1 at 100" in text
    assert "2 at 100" in text
    assert text.endswith(
        "All together up to 300. The draw is made anew when the run begins. Nothing was signed or sent."
    )
    assert (nonce(scene, "alice"), len(journal.runs(1000))) == before


def test_run__with_dry_run_and_json__is_the_plan_as_a_document(agent, workflow):
    plan = agent("run", workflow, "--dry-run", "--json", by="alice").json
    assert (plan["dry_run"], plan["deposit"], plan["lacks"]) == (True, "300", "")
    price, again = plan["steps"]
    assert sorted(price["order"], key=str) == [{"service_id": 1, "price": "100"}, {"service_id": 2, "price": "100"}]
    assert (price["step_id"], price["deposit"], price["refused"], again["deposit"]) == ("price", "200", "", "100")


def test_run__with_dry_run_over_a_cap__says_which_step_would_not_be_opened(agent, workflow):
    found = agent("run", workflow, "--dry-run", "--agent-max-per-run", "299", by="alice")
    assert found.code == 0
    assert (
        "would not be opened: The deposit of 100 base units passes the cap per run of 299 by 1: 0 are spent and 200 "
        "reserved. Raise that cap, or ask for less."
    ) in said(found.out)


def test_run__without_yes_and_without_a_terminal__sends_nothing(scene, agent, workflow):
    before = nonce(scene, "alice")
    found = agent("run", workflow, by="alice")
    assert (found.code, found.out) == (2, "")
    assert found.err == (
        "Nothing was sent: say --yes to send without being asked, or --dry-run to see what would be.\n"
    )
    assert nonce(scene, "alice") == before


def test_run__without_a_key__says_how_to_name_one(agent, workflow):
    found = agent("run", workflow, "--yes")
    assert (found.code, found.out) == (2, "")
    assert "There is no key to sign with: set COUNTERFOIL_KEYSTORE to an encrypted keystore file" in found.err


def test_run__of_a_file_that_is_not_there__says_so_before_all_else(agent, tmp_path):
    found = agent("run", tmp_path / "none.yaml", "--yes", rpc=unused_url())
    assert found.code == 2
    assert found.err == (
        f"The workflow {tmp_path}/none.yaml cannot be read (No such file or directory): check the path.\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: [", "cannot be read: line 1, column 8: "),
        ("just text", "is no mapping: begin it with `name:` and `steps:`"),
        ("name: x\nsteps: []", "there are no steps: add one under `steps:`"),
        ("name: x\nsteps: [{id: a, categry: 'data:x'}]", "step 1 (a), categry: is no field: correct its name"),
        ("name: x\nsteps: [{id: a, category: 'mcp:x', input: hello}]", "Step a: The input of an MCP tool is an object"),
    ],
)
def test_run__of_a_bad_file__says_where_and_pays_nothing(scene, agent, tmp_path, journal, text, words):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    before = nonce(scene, "alice"), len(journal.runs(1000))
    found = agent("run", path, "--yes", by="alice")
    assert (found.code, found.out) == (2, "")
    assert words in found.err
    assert (nonce(scene, "alice"), len(journal.runs(1000))) == before


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--agent-max-per-call", 99, "A call costs 100 base units, 1 more than the cap per call of 99"),
        ("--agent-max-per-run", 199, "The deposit of 200 base units passes the cap per run of 199 by 1"),
        ("--agent-max-per-day", 1, "passes the cap per day"),
        ("--agent-max-per-operator", 1, "passes the cap per operator and day"),
    ],
)
def test_run__over_a_cap__fails_and_names_it_and_signs_nothing(scene, agent, workflow, flag, value, words):
    before = nonce(scene, "alice")
    found = agent("run", workflow, "--yes", flag, value, by="alice")
    assert found.code == 2
    assert "status failed: step price: " in said(found.out)
    assert words in found.err
    assert "See it with `counterfoil agent show 20" in found.err
    assert nonce(scene, "alice") == before


def test_run__of_a_wallet_without_tokens__says_how_many_to_send(scene, agent, workflow):
    poor, token = scene.world.by("poor"), scene.world.token
    poor.send(Write("Token.transfer", token.contract.functions.transfer(NOWHERE, token.balance_of(poor.address) - 30)))
    found = agent("run", workflow, "--yes", by="poor")
    assert found.code == 2
    assert f"holds 30 of the payment token {token.address} and needs 200 for a deposit of 200: send it 170 more" in (
        found.err
    )
    planned = agent("run", workflow, "--dry-run", by="poor")
    assert (planned.code, "send it 170 more." in said(planned.out)) == (0, True)


def test_run__of_a_wallet_without_gas__is_kept_and_gone_on_with_once_it_has_some(scene, agent, workflow, journal):
    bare = scene.world.by("bare")
    scene.world.rpc("anvil_setBalance", bare.address, "0x0")
    planned = agent("run", workflow, "--dry-run", by="bare")
    assert (planned.code, "has no gas: send it some of the chain's coin" in said(planned.out)) == (0, True)
    found = agent("run", workflow, "--yes", by="bare")
    assert found.code == 2
    (row,) = journal.unfinished(bare.address.lower())
    assert "has no gas: send it some of the chain's coin, or name a relayer" in found.err
    assert found.err.endswith(f"Run {row.run_id} is kept: mend that, then go on with `counterfoil agent resume`.\n")
    scene.world.rpc("anvil_setBalance", bare.address, hex(10**18))
    resumed = agent("resume", "--json", by="bare")
    assert [(run["run_id"], run["status"], run["paid"]) for run in resumed.json["runs"]] == [
        (row.run_id, "done", "300")
    ]


def test_run__with_a_chain_out_of_reach__says_so(agent, workflow):
    found = agent("run", workflow, "--yes", by="alice", rpc=unused_url())
    assert found.code == 2
    assert "Traceback" not in found.err
    assert found.err.strip()


# --- call


def test_call__of_a_category__pays_and_prints_the_answer(agent):
    found = agent("call", CATEGORY, "--input", '{"symbol": "BTC"}', "--calls", 2, "--yes", "--json", by="alice")
    assert found.code == 0
    (step,) = found.json["steps"]
    assert (step["output"], step["paid"], found.json["workflow"]) == ([OUTPUT, OUTPUT], "200", "call")


@pytest.mark.parametrize(("said", "sent"), [("0", "0"), ('""', '""'), ("plain text", '"plain text"')])
def test_call__of_an_input_that_is_empty_or_no_object__sends_it_as_it_is(agent, said, sent):
    found = agent("call", CATEGORY, "--input", said, "--yes", "--json", by="alice")
    assert found.json["steps"][0]["output"] == {"echo": sent}


def test_call__with_a_pin__goes_there(agent):
    found = agent("call", "--service-id", 2, "--input", "{}", "--yes", "--json", by="alice")
    assert (found.json["steps"][0]["category"], services(found.json)) == (CATEGORY, [2])


def test_call__with_try_both__opens_two_and_its_plan_doubles_the_deposit(agent):
    words = ["call", CATEGORY, "--input", "{}", "--try-both", "--json"]
    assert agent(*words, "--dry-run", by="alice").json["deposit"] == "200"
    found = agent(*words, "--yes", by="alice")
    assert (sorted(services(found.json)), found.json["paid"]) == ([1, 2], "200")


def test_call__for_a_task__finds_its_category(scene, agent, ran):
    wait_until(lambda: "spot" in agent("call", "--task", "spot", "--input", "{}", "--dry-run", by="alice").out)
    found = agent("call", "--task", "spot", "--need", "data:crypto", "--input", "{}", "--yes", "--json", by="alice")
    (step,) = found.json["steps"]
    assert step["category"] == CATEGORY
    assert step["found_by"].startswith("by task 'spot' and data:crypto in the directory: service ")


def test_call__for_a_task_that_nobody_did__pays_nobody(scene, agent):
    before = nonce(scene, "alice")
    found = agent("call", "--task", "translate a poem", "--input", "{}", "--yes", by="alice")
    assert found.code == 2
    assert "knows no service for task 'translate a poem' and need '': name a category, or other words" in found.err
    assert nonce(scene, "alice") == before


def test_call__in_a_category_of_nobody__says_where_to_look(agent):
    for words in (["--yes"], ["--dry-run"]):
        found = agent("call", "data:weather", "--input", "{}", *words, by="alice")
        assert found.code == 2
        assert "category data:weather: there are no routable candidates at this block" in found.err
        assert "`counterfoil services` lists what is offered" in found.err


def test_call__of_nothing__says_what_to_name(agent):
    found = agent("call", "--input", "{}", "--yes", by="alice")
    assert found.code == 2
    assert "names no category, task, need or service_id: give one, so that a service can be found" in found.err


def test_call__over_its_budget__pays_nothing(scene, agent):
    before = nonce(scene, "alice")
    found = agent("call", CATEGORY, "--input", "{}", "--budget", 99, "--yes", by="alice")
    assert (found.code, nonce(scene, "alice")) == (2, before)
    assert "a deposit of 100 is above the step's budget of 99" in found.err


def test_call__with_a_node_that_is_down__fails_and_says_why(agent):
    found = agent("call", SEARCH, "--input", '{"query": "x"}', "--tool", "web_search", "--yes", by="alice")
    assert found.code == 2
    assert "step call: service 3: node not reached: the connection failed" in found.err


# --- what was done


def test_runs__of_a_home__are_the_latest_the_newest_first(agent, ran, journal):
    listed = agent("runs", "--json").json["runs"]
    assert ran in listed
    assert [run["run_id"] for run in listed] == [run.run_id for run in journal.runs(100)]
    assert agent("runs", "--limit", 2, "--json").json["runs"] == listed[:2]
    assert f"{ran['run_id']} two done" in said(agent("runs").out)


def test_show__of_a_run__is_its_record(agent, ran):
    assert agent("show", ran["run_id"], "--json").json == ran
    text = said(agent("show", ran["run_id"]).out)
    assert f"run {ran['run_id']} workflow two status done paid 300" in text
    assert ran["steps"][0]["sessions"][0]["session_id"][:12] in text


@pytest.mark.parametrize("command", ["show", "pin"])
def test_show_and_pin__of_a_run_that_is_unknown__say_where_to_look(agent, command):
    found = agent(command, "20990101-000000-abcdef")
    assert (found.code, found.out) == (2, "")
    assert found.err == "There is no run '20990101-000000-abcdef': `counterfoil agent runs` lists them.\n"


def test_runs__of_an_empty_home__are_none(agent, tmp_path):
    assert agent("runs", "--json", home=tmp_path).json == {"runs": []}
    assert agent("schedules", "--json", home=tmp_path).json == {"schedules": []}


def test_pin__of_a_run__is_a_workflow_that_goes_to_the_same_services(agent, ran, tmp_path):
    printed = agent("pin", ran["run_id"])
    pinned = read(printed.out.encode(), "printed")
    assert [step.service_id for step in pinned.steps] == services(ran)
    path = tmp_path / "pinned.yaml"
    written = agent("pin", ran["run_id"], "--output", path)
    assert said(written.out) == f"Written to {path}. Run it with: counterfoil agent run {path}"
    assert path.read_text() == printed.out
    again = agent("run", path, "--yes", "--json", by="alice").json
    assert (again["status"], services(again)) == ("done", services(ran))


def test_pin__into_a_folder_that_is_not_there__says_to_name_another(agent, ran, tmp_path):
    found = agent("pin", ran["run_id"], "--output", tmp_path / "none" / "pinned.yaml")
    assert found.code == 2
    assert "cannot be written (No such file or directory): name another with --output" in found.err


def test_status__of_a_wallet__is_what_it_holds_spent_and_may_spend(scene, agent):
    scene.world.by("nina")
    before = agent("status", "--json", by="nina").json
    assert before == {
        "address": scene.world.by("nina").address.lower(),
        "balance": str(10**15),
        "credit": "0",
        "has_gas": True,
        "spent_today": before["spent_today"],
        "unfinished_runs": 0,
        "closing_sessions": 0,
        "market": "the index",
        "caps": {"per_call": None, "per_run": None, "per_day": None, "per_operator": None},
    }
    agent("call", CATEGORY, "--input", "{}", "--yes", by="nina")
    after = agent("status", "--json", "--agent-max-per-day", "1000000", by="nina").json
    assert int(after["balance"]) + int(after["credit"]) == 10**15 - 100
    assert int(after["spent_today"]) == int(before["spent_today"]) + 100
    assert after["caps"]["per_day"] == "1000000"
    text = said(agent("status", "--agent-max-per-day", "1000000", by="nina").out)
    assert "caps per call none, per run none, per day 1,000,000, per operator none" in text


# --- resume


def test_resume__of_a_run_that_was_cut_off__goes_on_without_a_second_deposit(scene, agent, journal):
    desk = scene.desk("carol", scene.store)

    class CutOffError(Exception):
        pass

    def cut_off(_):
        raise CutOffError

    workflows = WorkflowRunner(desk, Runner(desk, opened=cut_off), lambda _: None)
    row = workflows.start(read(WORKFLOW.encode(), "here"))
    with pytest.raises(CutOffError):
        workflows.go(row)
    (begun,) = journal.sessions(row.run_id)
    status = agent("status", "--json", by="carol").json
    assert (status["unfinished_runs"], journal.run(row.run_id).status) == (1, "running")
    assert "running" in said(agent("runs", "--limit", 1).out)

    found = agent("resume", by="carol")
    assert (found.code, found.err) == (0, "")
    assert said(found.out).endswith("1 run gone on with, 0 sessions ended.")
    record = agent("show", row.run_id, "--json").json
    assert (record["status"], record["paid"]) == ("done", "300")
    first, _ = [session for step in record["steps"] for session in step["sessions"]]
    assert (first["session_id"], first["deposit"], first["paid"]) == (begun.session_id, "200", "200")
    assert desk.manager.draws(desk.address) == 2

    again = agent("resume", "--json", by="carol")
    assert again.json == {"runs": [], "sessions_ended": []}


def test_resume__of_a_wallet_that_left_nothing__says_so(agent):
    assert said(agent("resume", by="dave").out) == "0 runs gone on with, 0 sessions ended."


# --- schedules


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["WORKFLOW", "--yes"], "Say when: with --every 30s, or with --cron '0 7 * * 1-5'."),
        (["WORKFLOW", "--every", "5m", "--cron", "* * * * *", "--yes"], "Say when: with --every 30s, or with --cron"),
        (["WORKFLOW", "--every", "soon", "--yes"], "'soon' is no interval: give a number and s, m, h or d"),
        (["WORKFLOW", "--cron", "* * *", "--yes"], "'* * *' is no cron line (it has 3 fields): give five fields"),
        (["--every", "5m", "--yes"], "--every, --cron and --id are of one workflow: name its file too."),
        (["--yes"], "There is no schedule: name a workflow with --every or --cron."),
        (["--dry-run"], "--dry-run says what one run would spend: name its workflow too."),
        (["WORKFLOW", "--every", "5m"], "Nothing was sent: say --yes to send without being asked"),
        (["none.yaml", "--every", "5m", "--yes"], "The workflow none.yaml cannot be read (No such file or directory)"),
    ],
)
def test_schedule__of_what_cannot_be__says_why_and_keeps_nothing(agent, workflow, words, sentence):
    found = agent("schedule", *[str(workflow) if word == "WORKFLOW" else word for word in words], by="alice")
    assert (found.code, found.out) == (2, "")
    assert sentence in found.err
    assert agent("schedules", "--json").json == {"schedules": []}


def test_schedule__with_dry_run__says_what_one_run_would_spend_and_keeps_nothing(agent, workflow):
    found = agent("schedule", workflow, "--every", "5m", "--dry-run", "--json", by="alice")
    assert (found.code, found.json["deposit"]) == (0, "300")
    assert agent("schedules", "--json").json == {"schedules": []}


def test_unschedule__of_a_schedule__takes_it_out_and_of_none_says_so(scene, agent, workflow):
    with Schedules(scene.settings.home / "agent" / "schedules.sqlite", lambda _: None) as schedules:
        schedules.add("brief", workflow, every("5m"))
    (entry,) = agent("schedules", "--json").json["schedules"]
    assert (entry["schedule_id"], entry["when"], entry["workflow"]) == ("brief", "every 5m", str(workflow))
    assert "brief" in agent("schedules").out
    assert agent("unschedule", "brief", "--json").json == {"removed": "brief"}
    found = agent("unschedule", "brief")
    assert (found.code, found.err) == (
        2,
        "There is no schedule 'brief': `counterfoil agent schedules` lists them.\n",
    )


def test_output__of_every_command__holds_no_key(scene, agent, workflow, ran):
    key = bytes(scene.world.by("alice").account.key).hex()
    printed = [
        agent("run", workflow, "--yes", "--json", by="alice"),
        agent("status", "--json", by="alice"),
        agent("show", ran["run_id"], "--json"),
    ]
    assert all(key not in one.out + one.err for one in printed)
    for path in (scene.settings.home / "agent").iterdir():
        assert bytes.fromhex(key) not in path.read_bytes()
        assert key.encode() not in path.read_bytes()
    assert json.loads(printed[0].out)["client"] == scene.world.by("alice").address.lower()
