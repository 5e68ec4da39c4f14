import shutil

import pytest

from counterfoil.audit.state import StateSource
from counterfoil.chain.errors import RevertedError
from tests.support.chain import unused_url


def test_audit_session__of_an_honest_client__prints_every_check_and_exits_0(busy, run):
    found = run("audit", "session", busy.sessions["next"])

    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[-1] == "ok (state: ok, index: ok, receipt: ok)"
    assert "service " in found.out.splitlines()[1]
    for name in ("session id", "snapshot", "seed", "candidates", "choice", "price", "lens", "digest", "terms"):
        assert name in found.out
    assert all(len(line) <= 100 for line in found.out.splitlines())
    assert "\x1b" not in found.out


@pytest.mark.parametrize("by", ["state", "index", "both"])
def test_audit_session__by_each__says_what_it_replayed_by(busy, run, by):
    found = run("audit", "session", busy.sessions["first"], "--by", by, "--json")

    assert found.code == 0
    assert found.json["outcome"] == "ok"
    assert found.json["by"] == {
        "state": None if by == "index" else "ok",
        "index": None if by == "state" else "ok",
        "receipt": "ok",
    }


def test_audit_session__by_number__is_the_session_of_that_number(busy, run):
    assert run("audit", "session", 1, "--json").json["session_id"] == busy.sessions["first"]


def test_audit_session__with_an_edited_stake__exits_1_and_names_it(busy, run, tmp_path):
    edited = busy.edited(tmp_path, "UPDATE node_stake SET stake = 5000000 WHERE node_id = 1")
    found = run("audit", "session", busy.sessions["first"], "--database", edited)

    assert found.code == 1
    assert found.out.splitlines()[-2:] == [
        "mismatch (state: ok, index: mismatch, receipt: ok)",
        "first difference: candidate 1: stake is 5000000 in the index and 1000000 in the receipt",
    ]


def test_audit_session__with_a_lost_receipt__exits_2_and_says_why_on_stderr(busy, run):
    found = run("audit", "session", busy.sessions["lost receipt"])

    assert found.code == 2
    assert "state: ok, index: ok, receipt: cannot be checked" in found.out.replace("\n", " ")
    assert "is missing: ask the session's client for it and put it there" in found.err


@pytest.mark.parametrize("cut", [0, 100])
def test_audit_session__with_a_truncated_receipt__exits_2(busy, run, tmp_path, cut):
    home = shutil.copytree(busy.home, tmp_path / "home")
    decision = run("audit", "session", 1, "--json").json["session"]["decision"]
    path = home / "receipts" / f"{decision[2:]}.json"
    path.write_bytes(path.read_bytes()[:cut])
    found = run("audit", "session", 1, home=home)

    assert found.code == 2
    assert "it was cut or changed, or is another session's" in found.err


def test_audit_session__that_commits_to_a_foreign_receipt__exits_1(busy, run):
    found = run("audit", "session", busy.sessions["foreign receipt"], "--json")

    assert found.code == 1
    assert found.json["by"] == {"state": "ok", "index": "ok", "receipt": "mismatch"}


def test_audit_session__that_does_not_exist__exits_2_with_a_sentence(run):
    found = run("audit", "session", "0x" + "34" * 32)

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("There is no session 0x3434")
    assert found.err.endswith("or bring the index up to date with `counterfoil index run`.\n")


@pytest.mark.parametrize("session", ["77", "0xabcdabcd", "..", "x" * 500])
def test_audit_session__that_the_index_cannot_find__exits_2_with_a_sentence(run, session):
    found = run("audit", "session", session)

    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1
    assert len(found.err) < 300


def test_audit_session__with_a_dead_rpc__exits_2_with_a_sentence(busy, run):
    found = run("audit", "session", busy.sessions["first"], rpc=unused_url())

    assert (found.code, found.out) == (2, "")
    assert "start the chain, or name another with --rpc" in found.err


def test_audit_session__with_no_deployment__exits_2_and_writes_nothing(busy, run, tmp_path):
    found = run("audit", "session", busy.sessions["first"], home=tmp_path / "empty")

    assert (found.code, found.out) == (2, "")
    assert "deploy with `ape run deploy`, or start with `make demo`" in found.err
    assert not (tmp_path / "empty").exists()


def test_audit_session__with_a_wrong_chain__exits_2_with_a_sentence(busy, run, tmp_path):
    text = (busy.home / "deployments" / "31337.json").read_text()
    (tmp_path / "other.json").write_text(text.replace('"chain_id": 31337', '"chain_id": 1'))
    found = run("audit", "session", busy.sessions["first"], "--deployment", tmp_path / "other.json")

    assert (found.code, found.out) == (2, "")
    assert "serves chain 31337, the deployment file names chain 1" in found.err


def test_audit_range__over_everything__prints_shares_clients_and_faults(busy, run):
    found = run("audit", "range", 0, 1000)
    lines = found.out.splitlines()

    assert found.code == 1
    assert lines[0] == "blocks 0 to 1000: 18 sessions"
    assert lines[-2:] == [
        "9 ok, 7 mismatches, 2 cannot be checked",
        "13 of 18 decisions replayed by state and by index, 7 mismatches",
    ]
    assert "share of each service beside what its weights promised" in lines
    assert "attempts that skipped a node without opening a session: " in found.out
    assert any(line.startswith("snapshot age in blocks: ") for line in lines)
    assert "candidate 2: stake is 2000000 on chain and 2000001 in the receipt" in found.out.replace("\n", " ")
    assert all(len(line) <= 100 for line in lines)


def test_audit_range__over_honest_blocks__exits_0(busy, run):
    last = run("audit", "session", busy.sessions["failed over"], "--json").json["session"]["opened_block"]
    found = run("audit", "range", 0, last, "--json")

    assert (found.code, found.err) == (0, "")
    assert found.json["summary"] == "8 of 8 decisions replayed by state and by index, 0 mismatches"
    assert {share["category"] for share in found.json["shares"]} == {"data:crypto-price", "llm:completion"}
    assert found.json["faults"] == []


def test_audit_range__without_sessions__exits_0(run):
    found = run("audit", "range", 0, 1)

    assert found.code == 0
    assert found.out.splitlines()[0] == "blocks 0 to 1: 0 sessions"


def test_audit_range__backwards__exits_2_with_a_sentence(run):
    found = run("audit", "range", 5, 1)

    assert (found.code, found.err) == (
        2,
        "Blocks 5 to 1 are no range: give the first block, then the last.\n",
    )


def test_audit_range__on_a_terminal__shows_how_far_it_is(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    found = run("audit", "range", 0, 60, "--json")

    assert "auditing" in found.err
    assert "sessions" in found.err
    assert found.json["mismatches"] == 0


def test_audit_range__by_index_alone__needs_no_chain(run):
    found = run("audit", "range", 0, 60, "--by", "index", "--json", rpc=unused_url())

    assert found.code == 0
    assert found.json["summary"].endswith("replayed by index, 0 mismatches")


@pytest.mark.parametrize("length", [10, 6])
def test_audit_session__by_state_with_a_number_or_prefix__is_resolved_by_the_index(busy, run, length):
    wanted = busy.sessions["first"]
    for reference in ("1", wanted[:length]):
        found = run("audit", "session", reference, "--by", "state", "--json")
        assert (found.code, found.json["session_id"]) == (0, wanted)
        assert found.json["by"] == {"state": "ok", "index": None, "receipt": "ok"}


def test_audit_session__by_state_with_a_number_nobody_knows__exits_2_with_the_next_step(busy, run, tmp_path):
    unknown = run("audit", "session", "77", "--by", "state")
    nameless = run("audit", "session", "1", "--by", "state", "--database", tmp_path / "none.sqlite")

    assert (unknown.code, nameless.code) == (2, 2)
    assert unknown.err.startswith("The index holds no session '77'")
    assert nameless.err.endswith("give the full id of 0x and 64 hexadecimal digits.\n")


@pytest.mark.parametrize(
    "edit",
    [
        f"UPDATE session SET price_cap = '{'9' * 79}'",
        "UPDATE parameter SET value = 'much' WHERE name = 'min_stake'",
    ],
)
@pytest.mark.parametrize("by", ["index", "both"])
def test_audit_session__with_a_number_in_the_index_that_none_can_be__exits_1(busy, run, tmp_path, edit, by):
    edited = busy.edited(tmp_path, edit)
    found = run("audit", "session", busy.sessions["first"], "--by", by, "--database", edited, "--json")

    assert (found.code, found.json["by"]["index"]) == (1, "mismatch")
    assert "A row of the index is damaged" in found.json["first_difference"]


@pytest.mark.parametrize("column", ["operator", "max_price", "opened_block"])
def test_audit_session__by_index_alone_with_a_term_that_the_id_leaves_out__is_told_by_the_log(
    busy, run, tmp_path, column
):
    changed = "client" if column == "operator" else f"{column} + 1"
    edited = busy.edited(tmp_path, f"UPDATE session SET {column} = {changed}")
    found = run("audit", "session", busy.sessions["first"], "--by", "index", "--database", edited, "--json")

    assert (found.code, found.json["by"]["index"]) == (1, "mismatch")
    words = "has no log of its opening" if column == "opened_block" else f"session: {column} is "
    assert words in found.json["first_difference"]


def test_audit_range__with_few_columns_to_show__wraps_no_title(run):
    lines = run("audit", "range", 0, 60).out.splitlines()

    assert "what no receipt proves: skipped attempts, caps and snapshots of each client" in lines
    assert any("oldest snapshot in blocks" in line for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_audit_session__refused_with_escape_codes__prints_them_harmless(busy, run, monkeypatch):
    def refuse(*_):
        raise RevertedError("candidates", "\x1b[2Jpwned\x9b31m")

    monkeypatch.setattr(StateSource, "candidates", refuse)
    found = run("audit", "session", busy.sessions["first"])

    assert found.code == 2
    assert "pwned" in found.err
    assert found.err.removesuffix("\n").isprintable()
    assert "\x1b" not in found.out
