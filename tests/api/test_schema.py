"""Whatever the OpenAPI document allows, and much that it does not, is answered as the document says."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from counterfoil.api.openapi import operations
from tests.api.conftest import undone

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
CASES = [
    (path, method, mode)
    for path, method, operation in operations(undone().openapi())
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation.get("parameters") or "requestBody" in operation
]
BOUNDED = settings(
    max_examples=80, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def described(busy_app):
    return schemathesis.openapi.from_asgi("/openapi.json", busy_app)


@pytest.mark.parametrize(("path", "method", "mode"), CASES, ids=lambda part: getattr(part, "name", part))
def test_api__whatever_it_is_asked__answers_as_its_document_says(described, path, method, mode):
    @BOUNDED
    @given(described[path][method].as_strategy(generation_mode=mode))
    def ask(case):
        case.call_and_validate(checks=CHECKS)

    ask()
