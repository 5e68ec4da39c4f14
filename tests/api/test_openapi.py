"""The OpenAPI document says everything that a client needs, and docs/http.md says the same."""

import pytest
from pydantic import TypeAdapter

from counterfoil import answers
from counterfoil.api.examples import example_receipt
from counterfoil.api.openapi import operations
from counterfoil.api.problems import KINDS, MAX_DETAIL, urn
from counterfoil.receipts import canonical, digest, verify
from scripts import document_http
from scripts.bad_input import rows
from scripts.document_http import app_document, form

DOCUMENT = app_document()
OPERATIONS = {f"{method} {path}": operation for path, method, operation in operations(DOCUMENT)}
PROBLEM = {"$ref": "#/components/schemas/Problem"}
every_operation = pytest.mark.parametrize("name", OPERATIONS)


def successes(operation):
    return {status: found for status, found in operation["responses"].items() if status.startswith("2")}


@every_operation
def test_operation__of_each__is_described_with_an_example_of_every_parameter(name):
    operation = OPERATIONS[name]
    assert operation["summary"]
    assert operation["description"].endswith(".")
    for parameter in operation.get("parameters", ()):
        assert parameter["description"]
        (example,) = parameter["schema"]["examples"]
        assert example is not None


@every_operation
def test_operation__of_each__has_an_example_of_its_answer_that_is_one(name):
    for response in successes(OPERATIONS[name]).values():
        ((kind, content),) = response["content"].items()
        example, reference = content["example"], content["schema"].get("$ref", "")
        assert kind in {"application/json", "text/plain"}
        assert example
        if reference:
            described = TypeAdapter(getattr(answers, reference.rpartition("/")[2]))
            assert described.dump_python(described.validate_python(example, strict=True)) == example


@every_operation
def test_operation__of_each__answers_anything_else_with_a_described_problem(name):
    responses = OPERATIONS[name]["responses"]
    assert ("422" in responses) == (name == "POST /experience")
    assert {"400", "408", "413", "414", "500"} <= set(responses)
    for status in set(responses) - set(successes(OPERATIONS[name])) - {"304"}:
        ((kind, content),) = responses[status]["content"].items()
        assert (kind, content["schema"]) == ("application/problem+json", PROBLEM)
        assert content["example"]["status"] == int(status)


def test_operations__of_bad_input__name_the_problem_that_it_is_answered_with():
    for row in rows(DOCUMENT):
        if row.operation == "none" or row.kind == "wrong-method":  # of no operation that there is
            continue
        described = OPERATIONS[row.operation]["responses"][str(KINDS[row.kind].status)]["description"]
        assert f"`{urn(row.kind)}`" in described, row


def test_problem__in_the_document__has_exactly_the_stable_types():
    problem = DOCUMENT["components"]["schemas"]["Problem"]
    assert problem["properties"]["type"]["enum"] == [urn(kind) for kind in KINDS]
    assert problem["properties"]["detail"]["maxLength"] == MAX_DETAIL
    assert set(problem["required"]) == {"type", "title", "status", "detail"}
    added = {member for kind in KINDS.values() for member in kind.adds}
    assert set(problem["properties"]) == {*problem["required"], *added}


def test_examples__of_a_receipt_and_its_session__belong_together():
    receipt = example_receipt()
    assert verify(canonical(receipt), digest(receipt)) == receipt
    session = OPERATIONS["GET /sessions/{which}"]["responses"]["200"]["content"]["application/json"]["example"]
    assert session["session"]["decision"] == digest(receipt)
    assert session["session"]["service_id"] == receipt.choice


def test_page__in_docs__is_what_the_endpoints_say():
    assert document_http.PATH.read_text() == document_http.document(), "run `make docs`"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "boolean"}, "`true` or `false`"),
        ({"type": "string", "maxLength": 9}, "at most 9 characters"),
        ({"type": "string", "enum": ["open", "settled"]}, "`open` or `settled`"),
        ({"type": "string", "pattern": "^a$"}, "`^a$`"),
        ({"type": "integer", "minimum": 1, "maximum": 10}, "a whole number from 1 to 10"),
        ({"type": "integer", "minimum": 0, "exclusiveMaximum": 2**53}, "a whole number from 0 and below 2^53"),
        (
            {"anyOf": [{"type": "integer", "minimum": 0, "exclusiveMaximum": 2**256 - 1}, {"type": "null"}]},
            "a whole number from 0 and below 2^256 - 1",
        ),
    ],
)
def test_form__of_a_schema__is_in_words(schema, words):
    assert form(schema) == words
