"""`GET /audit/ID` over honest and dishonest sessions: what the command says by the index, and no more."""

import json

import httpx
import pytest
from click.testing import CliRunner

from counterfoil.api import audits
from counterfoil.api.limits import Limits
from counterfoil.cli.main import main
from indexer.service import index_run
from tests.api.support import assert_problem
from tests.support.market import serving

KINDS = ["first", "next", "relaxed", "pinned", "failed over", "other service", "lying receipt", "bad receipt",
         "lost receipt", "no receipt", "other policy"]  # fmt: skip


def audit_of(api, which):
    answer = api.get(f"/audit/{which}")
    assert answer.status_code == 200, answer.text
    return answer


def in_the_terminal(busy, which):
    where = ["--home", str(busy.home), "--database", f"sqlite:///{busy.database}"]
    command = ["audit", "session", which, "--by", "index", "--json", *where]
    return CliRunner(mix_stderr=False).invoke(main, command).stdout


@pytest.mark.parametrize("kind", KINDS)
def test_audit__of_each_kind_of_session__is_what_the_command_says_by_the_index(busy, busy_api, kind):
    session = busy.sessions[kind]
    found = audit_of(busy_api, session).json()
    assert found["source"] == "index"
    assert found["audit"]["by"]["state"] is None
    said = in_the_terminal(busy, session).replace(f"{busy.home}/", "")
    assert found["audit"] == json.loads(said)


def test_audit__of_honest_and_dishonest_sessions__tells_them_apart(busy, busy_api):
    outcomes = {kind: audit_of(busy_api, busy.sessions[kind]).json()["audit"]["outcome"] for kind in KINDS}
    assert outcomes["first"] == outcomes["next"] == outcomes["pinned"] == "ok"
    assert outcomes["other service"] == outcomes["bad receipt"] == "mismatch"
    assert outcomes["lost receipt"] == "cannot be checked"


def test_audit__by_number_id_and_prefix__is_the_same(busy, busy_api):
    session = busy.sessions["first"]
    answers = [audit_of(busy_api, which).json() for which in ("1", session, session[:20])]
    assert answers == [answers[0]] * 3
    assert answers[0]["audit"]["session_id"] == session


def test_audit__of_a_session__names_its_block_and_is_not_sent_twice(busy, busy_api):
    answer = audit_of(busy_api, 1)
    as_of = answer.json()["as_of"]
    assert as_of == busy_api.get("/status").json()["as_of"]
    assert answer.headers["ETag"].startswith(f'"{as_of["hash"]}')
    again = busy_api.get("/audit/1", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_audit__of_a_missing_receipt__does_not_say_where_receipts_are(busy, busy_api):
    text = audit_of(busy_api, busy.sessions["lost receipt"]).text
    assert ".json is missing: ask the session's client for it" in text
    assert str(busy.home) not in text


def test_audit__that_would_take_too_long__is_a_problem_and_no_finding(busy_app):
    with serving(Limits(busy_app, read_seconds=0)) as url:
        assert "ask for less" in assert_problem(httpx.get(f"{url}/audit/1"), 503, "too-slow")
        assert "ask for less" in assert_problem(httpx.get(f"{url}/sessions/1"), 503, "too-slow")
        assert httpx.get(f"{url}/health").status_code == 200


def test_audit__whose_block_is_replaced_meanwhile__asks_to_ask_again(busy, busy_api, monkeypatch):
    busy.world.by("pat")  # the newest block has a transaction, which the reorg drops
    index_run(busy.settings())
    plain = audits._audit

    def replacing(*arguments):
        busy.world.rpc("anvil_reorg", 1, [])
        index_run(busy.settings())
        return plain(*arguments)

    monkeypatch.setattr(audits, "_audit", replacing)
    assert "ask again" in assert_problem(busy_api.get("/audit/1"), 503, "not-ready")
    monkeypatch.undo()
    assert audit_of(busy_api, 1).json()["audit"]["outcome"] == "ok"
