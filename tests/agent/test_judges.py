"""Judges before hostile answers, and hooks that do all that a hook can do wrong."""

import base64
import json
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from counterfoil.agent.forms import CallAnswer, CallRequest
from counterfoil.agent.hooks import MAX_OUTPUT
from counterfoil.agent.judges import MAX_REASON, Checks, Verdict, judge
from counterfoil.agent.schema import misfit

REQUEST = CallRequest("POST", "/price", {"Content-Type": "application/json"}, b'{"symbol":"BTC"}')
PRICE = {"type": "object", "properties": {"price": {"type": "number", "minimum": 1}}, "required": ["price"]}
SECRET = "correct horse battery staple"


def judged(checks=None, *, body=b"{}", output=None, status=200, latency=5, failure=None, **more):
    answer = CallAnswer(status, "application/json", body)
    return judge(Checks(**checks or {}), REQUEST, answer, output, latency, failure=failure, **more)


# --- built-in checks


@pytest.mark.parametrize(
    ("checks", "answer"),
    [
        ({}, {}),
        ({}, {"status": 299}),
        ({"status": [200, 302]}, {"status": 302}),
        ({"within_ms": 5}, {"latency": 5}),
        ({"matches": r"price_\w+"}, {"body": b'{"price_usd": 5}'}),
        ({"matches": "é"}, {"body": "café".encode()}),
        ({"json_schema": PRICE}, {"output": {"price": 1.5}}),
        ({"json_schema": {"$ref": "#/$defs/p", "$defs": {"p": {"const": 1}}}}, {"output": 1}),
        ({"json_schema": {"uniqueItems": True}}, {"output": [1, True, "1", [1], [True], {"a": 1}, {"a": "1"}, None]}),
        ({"json_schema": {"pattern": "^a+$"}}, {"output": "aaa"}),
    ],
)
def test_judge__of_an_answer_that_passes__says_that_it_worked(checks, answer):
    assert judged(checks, **answer) == Verdict(True, None, "Every check passed.")


@pytest.mark.parametrize(
    ("checks", "answer", "reason"),
    [
        ({}, {"status": 301}, "The status is 301, which is not of 200 to 299."),
        ({"status": [201]}, {"status": 200}, "The status is 200, which is not of 201."),
        ({}, {"failure": "The tool says: out of credit."}, "The tool says: out of credit."),
        ({}, {"failure": ""}, "The answer cannot be read."),
        ({}, {"failure": "two\nlines\x1b[31m"}, "Two\N{REPLACEMENT CHARACTER}lines\N{REPLACEMENT CHARACTER}[31m."),
        ({"within_ms": 5}, {"latency": 6}, "The answer took 6 ms, longer than 5 ms."),
        ({"matches": "^ok$"}, {"body": b"\xffok"}, "The body does not match '^ok$'."),
        ({"json_schema": PRICE}, {"output": {}}, "The output does not fit the JSON Schema at required."),
        (
            {"json_schema": PRICE}, {"output": {"price": 0}},
            "The output does not fit the JSON Schema at properties/price/minimum.",
        ),
        ({"json_schema": {"uniqueItems": True}}, {"output": [{"a": [1]}, {"a": [1.0]}]}, None),
        ({"json_schema": {"pattern": "^a+$"}}, {"output": "b"}, None),
        ({"json_schema": {"additionalProperties": False}}, {"output": {"<script>": 1}}, None),
        ({"status": [201], "within_ms": 1}, {"latency": 2, "failure": "x"}, "The status is 200, which is not of 201."),
    ],
)  # fmt: skip
def test_judge__of_an_answer_that_fails__says_why_and_nothing_that_it_says(checks, answer, reason):
    verdict = judged(checks, **answer)
    assert (verdict.worked, verdict.score) == (False, None)
    assert verdict.reason == (reason or verdict.reason)
    assert "<script>" not in verdict.reason


@given(st.text(max_size=400))
def test_judge__of_any_failure__gives_a_printable_reason_within_its_bytes(failure):
    reason = judged(failure=failure).reason
    assert len(reason.encode()) <= MAX_REASON
    assert reason.isprintable()
    assert reason.endswith(".")


def test_judge__with_a_pattern_that_backtracks__gives_up():
    verdict = judged({"matches": "^(a|aa)+$"}, body=b"a" * 200 + b"b")
    assert not verdict.worked
    assert verdict.reason == "The body cannot be held against '^(a|aa)+$' within 1 s."


@pytest.mark.parametrize(
    ("schema", "output"),
    [
        ({"pattern": "^(a|aa)+$"}, "a" * 200 + "b"),
        ({"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 2}], "minItems": 1}, [[[[[]]]]]),
        ({"uniqueItems": True}, [{"n": number * (2**61 - 1)} for number in range(20_000)]),
    ],
)
def test_misfit__of_a_slow_check__ends_in_its_time(schema, output):
    for _ in range(20 if "anyOf" in schema else 0):
        output = [output]
    said = misfit(Checks(json_schema=schema).json_schema, output, seconds=0.2)
    assert said in {None, "the output cannot be held against the JSON Schema within 0.2 s"}
    assert (said is None) == ("uniqueItems" in schema)


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"items": {"$ref": "#"}}, {"multipleOf": 0.5}, {"type": "object"}])
def test_misfit__of_values_at_the_edge__never_breaks(schema):
    deep = []
    for _ in range(5000):
        deep = [deep]
    for output in (deep, 10**400, float("inf"), float("nan"), "\ud800"):
        said = misfit(schema, output)
        assert said is None or said.startswith("the output")


def test_misfit__with_a_reference_elsewhere__asks_nobody(monkeypatch):
    monkeypatch.setattr("urllib.request.urlopen", lambda *_: pytest.fail("a schema was fetched"))
    with pytest.raises(ValidationError, match="which is not in it"):
        Checks(json_schema={"$ref": "http://127.0.0.1:9/x.json"})


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$schema": "http://example.com/mine"}, r"names a \$schema that is not known"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, r"names a \$schema that is not known"),
        ({"$schema": 5}, r"names a \$schema"),
        ({"properties": {"a": {"$id": "sub/"}}}, r"has an \$id below its top"),
        ({"unevaluatedProperties": False}, "has unevaluatedProperties"),
    ],
)
def test_checks__with_a_schema_that_cannot_be_bounded__are_refused(schema, words):
    with pytest.raises(ValidationError, match=words):
        Checks(json_schema=schema)


def test_checks__with_an_older_draft__go_by_it():
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"const": 1}], "additionalItems": False}
    assert misfit(draft7, [1]) is None
    assert misfit(draft7, [1, 2]) == "the output does not fit the JSON Schema at additionalItems"


# --- a command


def python(code):
    return {"command": [sys.executable, "-c", code]}


@pytest.mark.parametrize(
    ("said", "score"), [("0", 0), ("100", 100), (" 92\n", 92), ("91.5", 92), ('{"score": 7, "why": "x"}', 7)]
)
def test_command__that_prints_a_number__scores(said, score):
    assert judged(python(f"print({said!r})")) == Verdict(True, score, f"The judge gave {score}/100.")


def test_command__is_told_of_the_call_as_json(tmp_path):
    seen = tmp_path / "seen.json"
    checks = python(f"import sys; open({str(seen)!r}, 'w').write(sys.stdin.read()); print(1)")
    judged(checks, body=b"\xff\x00", output={"price": 5}, latency=12)
    assert json.loads(seen.read_text()) == {
        "request": {
            "method": "POST", "path": "/price", "headers": {"Content-Type": "application/json"},
            "body": '{"symbol":"BTC"}',
        },
        "answer": {
            "status": 200, "content_type": "application/json", "body_base64": base64.b64encode(b"\xff\x00").decode(),
        },
        "output": {"price": 5},
        "latency_ms": 12,
    }  # fmt: skip


def test_command__that_reads_nothing_of_a_large_answer__still_scores():
    assert judged(python("print(5)"), body=b"x" * 2**20).score == 5


def test_command__never_sees_our_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_KEYSTORE_PASSWORD", SECRET)
    monkeypatch.setenv("counterfoil_private_key", SECRET)
    monkeypatch.setenv("OTHER", "kept")
    seen = tmp_path / "seen.json"
    code = f"import json, os; json.dump(dict(os.environ), open({str(seen)!r}, 'w')); print(1)"
    assert judged(python(code)).score == 1
    found = json.loads(seen.read_text())
    assert found["OTHER"] == "kept"
    assert SECRET not in seen.read_text()
    assert not [name for name in found if name.upper().startswith("COUNTERFOIL_")]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('fine')", "it gave no number from 0 to 100"),
        ("print(101)", "it gave no number"),
        ("print(-1)", "it gave no number"),
        ("print('NaN')", "it gave no number"),
        ("print('1e2')", "it gave no number"),
        ("print('true')", "it gave no number"),
        ("print('[' * 4000)", "it gave no number"),
        ("pass", "it gave no number"),
        ("print(5); raise SystemExit(3)", "it ended with 3"),
        ("import os; os.kill(os.getpid(), 9)", "it ended with -9"),
        ("while True: print('x' * 1000)", f"it wrote over {MAX_OUTPUT} bytes"),
    ],
)
def test_command__that_goes_wrong__leaves_the_call_worked_and_unscored(code, words):
    verdict = judged(python(code))
    assert (verdict.worked, verdict.score) == (True, None)
    assert verdict.reason.startswith(f"The judge gave no score, our own fault: {words}")


def test_command__that_is_not_there__says_so():
    verdict = judged({"command": ["/no/such/judge"]})
    assert verdict == Verdict(
        True, None, "The judge gave no score, our own fault: it cannot be started (No such file or directory)."
    )


@pytest.mark.parametrize("script", ["sleep 600", "exec 1>&-; sleep 600"])
def test_command__that_hangs__is_ended(script):
    verdict = judged({"command": ["sh", "-c", script]}, hook_seconds=0.3)
    assert verdict == Verdict(True, None, "The judge gave no score, our own fault: it took over 0.3 s.")


@pytest.mark.parametrize("then", ["yes", "yes & exit 0"])
def test_command__that_is_ended__is_so_with_all_that_it_started(tmp_path, then):
    pids = tmp_path / "pids"
    verdict = judged({"command": ["sh", "-c", f"sleep 600 & echo $$ $! > {pids}; {then}"]})
    assert "it wrote over" in verdict.reason
    for pid in pids.read_text().split():
        deadline = time.monotonic() + 60
        while _is_running(pid):
            assert time.monotonic() < deadline, f"{pid} still runs"
            time.sleep(0.01)


def _is_running(pid):
    """An ended process may stay as an entry until its parent has seen it: it does not run any more."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_command__before_an_answer_that_failed__is_not_asked(tmp_path):
    mark = tmp_path / "asked"
    verdict = judged(python(f"open({str(mark)!r}, 'w'); print(100)"), failure="no")
    assert (verdict.worked, mark.exists()) == (False, False)


def test_judge__of_an_output_that_is_no_json__blames_the_answer():
    assert judged(python("print(1)"), output=float("nan")) == Verdict(False, None, "The output is no JSON value.")


def test_command__of_any_judge__leaves_no_open_files():
    judged(python("print(1)"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for code in ("print(1)", "raise SystemExit(1)", "print('x' * 10000)"):
        judged(python(code))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


# --- a URL


@contextmanager
def hook(status=200, body=b'{"score": 81}', headers=()):
    """A judge over HTTP that answers every request alike, and what it was told."""
    told = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append((self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/judge", told
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("body", "score"), [(b'{"score": 81}', 81), (b"80.6", 81)])
def test_url__that_answers_a_score__scores(body, score):
    with hook(body=body) as (url, told):
        assert judged({"url": url}, output=[1]) == Verdict(True, score, f"The judge gave {score}/100.")
    ((kind, document),) = told
    assert (kind, json.loads(document)["output"]) == ("application/json", [1])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"status": 500}, "it answered 500"),
        ({"status": 302, "headers": [("Location", "http://127.0.0.1:9/")]}, "it answered 302"),
        ({"body": b'{"score": null}'}, "it gave no number"),
        ({"body": b"x" * (MAX_OUTPUT + 1)}, f"the answer is over {MAX_OUTPUT} bytes"),
    ],
)
def test_url__that_goes_wrong__leaves_the_call_worked_and_unscored(answer, words):
    with hook(**answer) as (url, _):
        verdict = judged({"url": url})
    assert (verdict.worked, verdict.score) == (True, None)
    assert verdict.reason.startswith(f"The judge gave no score, our own fault: {words}")


def test_url__where_nobody_answers__says_so_without_the_url():
    verdict = judged({"url": "http://127.0.0.1:9/judge?key=secret"})
    assert verdict.reason.startswith("The judge gave no score, our own fault: the connection failed")
    assert "secret" not in verdict.reason
