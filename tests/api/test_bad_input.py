"""Every endpoint answers every kind of bad input with a problem; an endpoint without such rows fails here."""

import copy

import pytest

from counterfoil.api.openapi import operations
from counterfoil.api.problems import KINDS
from scripts.bad_input import Row, main, rows, send
from tests.api.conftest import undone
from tests.api.support import assert_problem

DOCUMENT = undone().openapi()
ROWS = list(rows(DOCUMENT))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.operation}-{row.wrong}-{row}"[:100])
def test_request__that_is_bad__is_answered_with_the_problem_of_its_row(busy, busy_url, row):
    reply = send(busy_url, row)
    detail = assert_problem(reply, KINDS[row.kind].status, row.kind)
    assert str(busy.home) not in detail
    assert reply.headers["Allow"] if row.kind == "wrong-method" else "Allow" not in reply.headers


def test_rows__of_every_operation__try_each_parameter_and_the_body():
    tried = {(row.operation, row.wrong) for row in ROWS}
    for path, method, operation in operations(DOCUMENT):
        names = [item["name"] for item in operation.get("parameters", ())]
        wrong = {"unknown parameter", "method", "size", *names} | ({"body"} if "requestBody" in operation else set())
        assert {(f"{method} {path}", name) for name in wrong} <= tried


@pytest.mark.parametrize(
    "operation",
    [{"parameters": [{"name": "colour", "in": "query", "required": False}]}, {"requestBody": {}}],
)
def test_rows__of_an_endpoint_that_was_added_without_any__are_an_error(operation):
    document = copy.deepcopy(DOCUMENT)
    document["paths"]["/new"] = {"post": operation}
    with pytest.raises(KeyError):
        list(rows(document))


def test_rows__of_all_endpoints__meet_every_kind_that_a_client_can_cause():
    of_the_server = {"internal", "misconfigured", "not-ready", "too-slow", "slow-body"}
    of_the_server |= {"chain-unavailable", "empty-index", "replaced-block"}
    assert {row.kind for row in ROWS} == set(KINDS) - of_the_server


def test_main__with_a_running_server__prints_what_was_sent_and_what_came_back(busy_url, capsys):
    main(busy_url)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * len(ROWS)
    assert lines[:2] == [
        "GET /health?no_such=1",
        "    -> 400 bad-question: there is no parameter 'no_such' here; there are: none",
    ]
    declared = lines.index("POST /receipts with 4194305 bytes declared")
    assert lines[declared + 1].startswith("    -> 413 too-large: the body is larger than the 4194304 bytes")


def test_request__of_good_form__is_answered_by_every_get_endpoint(busy_url):
    paths = ["/services/best?task=x", "/services?after=0&limit=1", "/route?category=data:crypto-price", "/audit/1"]
    assert [send(busy_url, Row("", "", "GET", path, "")).status_code for path in paths] == [200] * 4
