"""Every reading command with --api: the same as over an index of one's own, and no server is believed."""

import json
import socket

import pytest

from counterfoil.asking import remote
from tests.support.chain import CATEGORY, unused_url

TIMED = [
    ("services",),
    ("services", "--category", CATEGORY, "--routable"),
    ("services", "--limit", 1, "--after", 1),
    ("services", "--best", "bitcoin prices in usd", "--need", "data:crypto"),
    ("services", "--need", "data:crypto", "--limit", 2, "--after", 1),
    ("services", "--best", "price", "--routable", "--limit", 1),
    ("service", 1),
    ("service", 1, "--experience"),
    ("service", 3, "--experience"),
    ("nodes",),
    ("nodes", "--limit", 2),
    ("nodes", "--operator", "OPERATOR"),
    ("nodes", "--operator", "0x" + "11" * 20),
    ("node", "show", 2),
    ("sessions",),
    ("sessions", "--limit", 2),
    ("sessions", "--client", "CLIENT", "--limit", 2),
    ("sessions", "--client", "CLIENT", "--after", 2, "--limit", 1),
    ("sessions", "--service", 1, "--node", 1, "--status", "settled"),
    ("session", 1),
    ("session", "SESSION"),
    ("session", "PREFIX"),
    ("route", CATEGORY),
    ("route", CATEGORY, "--client", "CLIENT", "--cap", 50),
    ("route", CATEGORY, "--client", "CLIENT", "--nonce", 7),
]
OTHER = [
    ("receipt", "show", "DIGEST"),
    ("receipt", "verify", "DIGEST"),
    ("receipt", "verify", "DIGEST", "--digest", "DIGEST"),
]
REFUSED = [
    ("service", 99),
    ("service", 99, "--experience"),
    ("node", "show", 99),
    ("session", 99),
    ("session", "0x" + "56" * 32),
    ("session", "xyz"),
    ("session", "ab"),
    ("session", ".."),
    ("services", "--best", ""),
    ("services", "--at", 999_999),
    ("nodes", "--at", "0x" + "12" * 32),
    ("route", "no:such"),
    ("route", "No Category"),
    ("receipt", "show", "none.json"),
]


@pytest.mark.parametrize("command", TIMED, ids=lambda words: " ".join(map(str, words)))
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["table", "json"])
@pytest.mark.parametrize("at", ["newest", "number", "hash"])
def test_reading__from_a_server__prints_what_the_index_itself_gives(ask, api, scene, command, more, at):
    block = scene.world.chain.block(scene.world.chain.head().number - 1)
    when = {"newest": (), "number": ("--at", block.number), "hash": ("--at", block.hash)}[at]
    own = ask(*command, *when, *more)
    assert (own.code, own.err) == (0, "")
    served = ask(*command, *when, *more, "--api", api)
    assert (served.code, served.err) == (0, "")
    assert served.out == own.out
    assert own.out.strip()


@pytest.mark.parametrize("command", OTHER, ids=lambda words: " ".join(map(str, words)))
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["table", "json"])
def test_receipt__from_a_server__prints_what_the_folder_gives(ask, api, command, more):
    own, served = ask(*command, *more), ask(*command, *more, "--api", api + "/")

    assert (served.code, served.err, served.out) == (own.code, own.err, own.out) == (0, "", own.out)
    assert "DIGEST" not in own.out


@pytest.mark.parametrize("command", REFUSED, ids=lambda words: " ".join(map(str, words)))
def test_reading__of_what_cannot_be_answered__ends_as_over_the_index_itself(ask, api, command):
    own, served = ask(*command), ask(*command, "--api", api)

    assert (served.code, served.out, served.err) == (2, "", own.err)
    assert own.code == 2


def test_index_status__from_a_server__is_of_its_index(ask, api):
    own, served = ask("index", "status", "--json").json, ask("index", "status", "--json", "--api", api).json

    assert served == own | {"database": api, "head": None}
    table = ask("index", "status", "--api", api).out.splitlines()
    assert table[1].split() == ["server", api]
    assert [line.split() for line in table[2:]] == [
        line.split() for line in ask("index", "status").out.splitlines()[3:]
    ]


def test_index_status__of_a_server_with_an_empty_index__says_so(ask, script):
    script.refuses("empty-index", "the index is empty", 503)

    assert "nothing yet: run `counterfoil index run`" in ask("index", "status", "--api", script.url).out


def audit_answer(audit, **changes):
    """What a server answers to /audit."""
    return {"as_of": AS_OF, "source": "index", "audit": audit | changes}


def test_audit_session__from_a_server__prints_its_document(ask, script):
    own = ask("audit", "session", 1, "--by", "index", "--json")
    script.says(audit_answer(own.json))

    assert ask("audit", "session", 1, "--json", "--api", script.url).out == own.out
    assert ask("audit", "session", 1, "--api", script.url).out == ask("audit", "session", 1, "--by", "index").out
    assert ask("audit", "session", "SESSION", "--by", "index", "--api", script.url).code == 0
    assert script.asked == ["/audit/1", "/audit/1", f"/audit/{own.json['session_id']}"]


@pytest.mark.parametrize("session", [1, "SESSION", "PREFIX", 99, "xyz"])
def test_audit_session__from_the_real_server__is_that_of_its_index(ask, api, session):
    own = ask("audit", "session", session, "--by", "index")
    served = ask("audit", "session", session, "--api", api)

    assert (served.code, served.out) == (own.code, own.out)
    assert own.code == (2 if session in {99, "xyz"} else 0)


@pytest.mark.parametrize(("outcome", "code"), [("mismatch", 1), ("cannot be checked", 2)])
def test_audit_session__that_a_server_found_wrong__has_the_exit_code_of_that(ask, script, outcome, code):
    script.says(audit_answer(ask("audit", "session", 1, "--json").json, outcome=outcome))

    assert ask("audit", "session", 1, "--api", script.url).code == code


@pytest.mark.parametrize("by", ["state", "both"])
def test_audit_session__of_a_server_by_chain_state__says_that_it_cannot(ask, script, by):
    assert refused(ask, script.url, "audit", "session", 1, "--by", by) == (
        f"The API at {script.url} replays by its index alone: say --by index, or leave out --api."
    )
    assert script.asked == []


@pytest.mark.parametrize("kind", ["http", "unknown-path"])
def test_audit_session__of_a_server_without_audits__says_how_to_audit(ask, script, kind):
    script.refuses(kind, "Not Found", 404)

    assert refused(ask, script.url, "audit", "session", 1) == (
        f"The API at {script.url} does not know this question: correct --api, or ask an index of your own."
    )


# --- which is asked


def test_reading__with_the_api_in_the_environment_or_the_file__asks_it(ask, api, monkeypatch, tmp_path):
    wanted = ask("services").out
    monkeypatch.setenv("COUNTERFOIL_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("COUNTERFOIL_API", api)
    assert ask("services").out == wanted
    monkeypatch.delenv("COUNTERFOIL_API")
    (tmp_path / "counterfoil.toml").write_text(f'api = "{api}"\n')
    assert ask("services").out == wanted
    assert ask("services", "--api", "").err.endswith("build it with `counterfoil index run`.\n")


@pytest.mark.parametrize("own", ["--database", "--home", "--rpc", "--deployment"])
def test_reading__with_a_server_and_an_index_of_ones_own__is_refused(ask, api, own):
    found = ask("services", "--api", api, own, "http://127.0.0.1:9")

    assert (found.code, found.out) == (2, "")
    assert found.err == f"--api asks a server, {own} names an index of your own: give one of them.\n"


def test_reading__with_a_flag_for_an_index__comes_before_a_server_of_the_environment(ask, monkeypatch, scene):
    monkeypatch.setenv("COUNTERFOIL_API", unused_url())

    assert ask("services", "--home", scene.settings.home).code == 0


def test_receipt__named_as_a_file__is_read_here(ask, api, scene, places):
    path = scene.settings.home / "receipts" / f"{places['DIGEST'][2:]}.json"

    assert ask("receipt", "show", path, "--api", unused_url()).out == ask("receipt", "show", "DIGEST").out


@pytest.mark.parametrize(
    "url", ["ftp://x.example", "x.example", "http://", "http://x/?key=1", "http://x/#y", "file:///etc"]
)
def test_reading__with_an_api_that_is_no_url_of_one__says_what_is(ask, url):
    found = ask("services", "--api", url)

    assert (found.code, found.out) == (2, "")
    assert "--api: give a URL such as https://counterfoil.example, without ? and #" in found.err
    assert url not in found.err


# --- what a server may say


def refused(ask, url, *command):
    """The one sentence in which a command ends that a server answered badly."""
    found = ask(*(command or ("services",)), "--api", url)
    assert (found.code, found.out) == (2, "")
    sentence = found.err.removesuffix("\n")
    assert sentence.isprintable()
    assert len(sentence) < 500
    return sentence


def test_reading__from_a_server_that_is_not_there__says_how_to_start_one(ask):
    url = unused_url()

    assert refused(ask, url) == (
        f"The API at {url} does not answer (the connection failed: ConnectError): "
        "start it with `counterfoil serve`, or correct --api."
    )


def test_reading__from_a_server_with_a_password_in_its_url__never_prints_it(ask, script):
    url = script.url.replace("http://", "http://me:secret@") + "/secret"
    script.says(b"no", status=502, kind="text/html")
    answered = refused(ask, url)
    silent = refused(ask, unused_url().replace("http://", "http://me:secret@"))

    assert script.asked == ["/secret/services?after=0&limit=100"]
    assert f"The API at {script.url} answers with status 502" in answered
    assert "secret" not in answered + silent
    assert "secret" not in ask("config", "--api", url).out


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"body": b"<html>", "kind": "text/html"}, "gave an answer of type 'text/html', not JSON"),
        ({"body": b"{}", "kind": "\x1b[2J"}, "not JSON"),
        ({"body": b'{"as_of": '}, "gave something that is cut or no JSON"),
        ({"body": b"\xff\xfe"}, "gave something that is cut or no JSON"),
        ({"body": b"[" * 100_000}, "gave something that is cut or no JSON"),
        ({"body": b'{"services": [], "next": ' + b"9" * 5000 + b"}"}, "gave something that is cut or no JSON"),
        ({"body": b"[]"}, "gave JSON of another form (all of it: "),
        ({"body": b"{}"}, "gave JSON of another form (as_of: Field required)"),
        ({"body": b"{}", "Content_Encoding": "gzip"}, "compressed"),
        ({"body": b"", "status": 301, "Location": "http://127.0.0.1:9"}, "answers with status 301 and no reason"),
        ({"body": b"no", "status": 500, "kind": "text/plain"}, "answers with status 500 and no reason"),
        ({"body": b'{"type": "about:blank", "detail": "x"}', "status": 400}, "answers with status 400 and no reason"),
        ({"body": b'{"type": 7}', "status": 400}, "answers with status 400 and no reason"),
        ({"body": b" " * (remote.MAX_BYTES + 1)}, "was not read, for the answer is over 16777216 bytes: ask for fewer"),
    ],
)  # fmt: skip
def test_reading__of_an_answer_that_cannot_be_used__ends_in_a_sentence_with_the_remedy(ask, script, said, words):
    script.says(**said)

    assert words in refused(ask, script.url)


def test_reading__of_an_answer_that_does_not_come__ends_in_time(ask, monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_REQUEST_SECONDS", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        sentence = refused(ask, url)

    assert sentence == f"The API at {url} gave no whole answer in 0.2 s: try again, or raise request_seconds."


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("bad-question", "\ufffd[2J what"),
        ("not-ready", "\ufffd[2J what"),
        ("replaced-block", "\ufffd[2J what"),
        ("not-found", "\ufffd[2J what"),
        ("misconfigured", "failed (status 400, \ufffd[2J what"),
        ("\x1b", "failed (status 400, \ufffd[2J what"),
    ],
)
def test_reading__of_a_problem_with_escape_codes__prints_them_harmless_and_cut(ask, script, kind, words):
    script.refuses(kind, "\x1b[2J what\n" + "x" * 10_000)

    assert words in refused(ask, script.url)


BAD_VALUES = [
    ("price", "much"), ("price", "-1"), ("price", 7), ("price", "9" * 101), ("stake", "\u0661"), ("stake", "1\n"),
    ("service_id", True), ("service_id", -1), ("service_id", 2**63), ("rating_sum", 1.5), ("routable", "yes"),
    ("headroom", "1/0"), ("category", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BAD_VALUES)
def test_services__with_a_value_that_none_can_be__ends_in_a_sentence(ask, script, name, value):
    answer = ask("services", "--json").json
    answer["services"][1][name] = value
    script.says(answer)

    assert f"JSON of another form (services.1.{name}: " in refused(ask, script.url)


def test_services__with_escape_codes_in_its_texts__prints_them_harmless(ask, script):
    answer = ask("services", "--json").json
    for row in answer["services"]:
        row["category"] = "\x1b[31m\x9b2J\u202eevil\n" * 20
    script.says(answer)
    found = ask("services", "--api", script.url)

    assert found.code == 0
    assert all(line.isprintable() and len(line) <= 100 for line in found.out.splitlines())


ELSEWHERE = [
    (("service", 1), lambda answer: answer["service"].update(service_id=2)),
    (("service", 1, "--experience"), lambda answer: answer.update(service_id=2)),
    (("node", "show", 1), lambda answer: answer["node"].update(node_id=2)),
    (("session", 1), lambda answer: answer["session"].update(number=2, session_id="0x1" + "0" * 63)),
    (("session", "SESSION"), lambda answer: answer["session"].update(session_id="0x" + "00" * 32)),
    (("services", "--at", 3), lambda answer: answer["as_of"].update(block=4)),
    (("route", CATEGORY), lambda answer: answer.update(digest="0x" + "00" * 32)),
    (("route", CATEGORY), lambda answer: answer["as_of"].update(block=1)),
]


@pytest.mark.parametrize(("command", "change"), ELSEWHERE)
def test_reading__of_an_answer_to_another_question__is_refused(ask, script, scene, command, change):
    if "--at" in command:
        command = ("services", "--at", scene.world.chain.head().number)
    answer = ask(*command, "--json").json
    change(answer)
    script.says(answer)

    assert "gave an answer to another question" in refused(ask, script.url, *command)


def test_audit_session__of_another_session_than_was_asked_for__is_refused(ask, script):
    script.says(audit_answer(ask("audit", "session", 1, "--json").json, session_id="0x" + "00" * 32))

    assert "gave an answer to another question" in refused(ask, script.url, "audit", "session", "SESSION")


@pytest.mark.parametrize("asked", [("--cap", 50), ("--nonce", 3), ("--client", "OPERATOR")])
def test_route__of_another_draw_than_was_asked_for__is_refused(ask, script, asked):
    script.says(ask("route", CATEGORY, "--json").json)

    assert "gave an answer to another question" in refused(ask, script.url, "route", CATEGORY, *asked)


def test_route__that_does_not_follow_from_its_inputs__is_refused(ask, script):
    answer = ask("route", CATEGORY, "--json").json
    answer["decision"]["candidates"][0]["price"] = "1"
    script.says(answer)

    assert "gave a decision that does not follow from its inputs (" in refused(ask, script.url, "route", CATEGORY)


@pytest.mark.parametrize("command", ["show", "verify"])
def test_receipt__that_is_not_the_one_of_the_digest__is_refused(ask, script, places, scene, command):
    true = scene.world.receipts.read(places["DIGEST"])
    script.says(true.replace(b'"attempt":0', b'"attempt":1'))
    sentence = refused(ask, script.url, "receipt", command, "DIGEST")

    assert "gave what is not the receipt of that digest (these bytes have the digest 0x" in sentence


def test_receipt__that_the_server_lacks__names_who_has_it(ask, api):
    absent = "0x" + "12" * 32

    assert refused(ask, api, "receipt", "show", absent) == (
        f"There is no receipt {absent}: ask the session's client for the file."
    )


# --- filters, which are applied here


AS_OF = {"chain_id": 1, "block": 5, "hash": "0x" + "ab" * 32, "timestamp": 1, "finalized": False, "behind": 0}


@pytest.mark.parametrize(
    "command",
    [
        ("sessions", "--status", "closing"),
        ("sessions", "--service", 77),
        ("sessions", "--client", "0x" + "1" * 40),
        ("nodes", "--operator", "0x" + "1" * 40),
    ],
)
def test_list__from_a_server_that_does_not_filter__is_refused(ask, script, command):
    script.says(json.loads(ask(command[0], "--json").out))

    assert "another question" in refused(ask, script.url, *command)


def test_answers__of_a_server_with_more_than_this_program_knows__leave_that_out(ask, script):
    answer = ask("services", "--json")
    script.says(json.loads(answer.out) | {"new": 1})

    assert ask("services", "--json", "--api", script.url).out == answer.out
