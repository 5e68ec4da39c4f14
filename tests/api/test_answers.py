"""What is answered is what the OpenAPI document says: every field, of its type, and no other."""

import pytest
from pydantic import TypeAdapter

from counterfoil import answers
from tests.api.test_services import api, ask, scene  # noqa: F401

PATHS = {
    "/status": "StatusAnswer",
    "/services": "ServicesAnswer",
    "/services/1": "ServiceAnswer",
    "/services/best?task=bitcoin&need=data:crypto": "BestAnswer",
    "/services/1/experience": "ExperienceAnswer",
    "/nodes": "NodesAnswer",
    "/nodes/1": "NodeAnswer",
    "/sessions": "SessionsAnswer",
    "/sessions/1": "SessionAnswer",
    "/route?category=data:crypto-price": "RouteAnswer",
}


@pytest.mark.parametrize(("path", "name"), PATHS.items())
def test_get__of_each_endpoint__answers_as_it_is_described(api, path, name):  # noqa: F811
    # What is not described does not come through.
    described, answered = TypeAdapter(getattr(answers, name)), ask(api, path)
    assert (
        described.dump_python(described.validate_python(answered, strict=True)) == answered
    )  # what is not described goes


def test_openapi__of_each_endpoint__names_the_answer(api):  # noqa: F811
    described = api.get("/openapi.json").json()["paths"]
    for path, name in PATHS.items():
        template = path.partition("?")[0].replace("/services/1", "/services/{service_id}")
        template = template.replace("/nodes/1", "/nodes/{node_id}").replace("/sessions/1", "/sessions/{which}")
        answer = described[template]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert answer == {"$ref": f"#/components/schemas/{name}"}
