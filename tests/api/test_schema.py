"""Whatever the OpenAPI document allows, and much that it does not, is answered as the document says."""

import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
CONFIG = """
[generation]
deterministic = true
max-examples = 80

[phases.stateful]
enabled = false
"""


@pytest.fixture(scope="module")
def described(busy_app):
    return schemathesis.openapi.from_asgi("/openapi.json", busy_app, config=SchemathesisConfig.from_str(CONFIG))


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
def test_api__whatever_it_is_asked__answers_as_its_document_says(case):
    case.call_and_validate(checks=CHECKS)
