"""What the tests of the API have in common."""

from http import HTTPStatus

from counterfoil.api.problems import KINDS, MAX_DETAIL


def assert_problem(response, status, kind):
    """A response is a problem document of that status and kind, in every part. Gives its sentence."""
    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/problem+json")
    body = response.json()
    assert set(body) == {"type", "title", "status", "detail", *KINDS[kind].adds}
    assert body["type"] == f"urn:counterfoil:problem:{kind}"
    assert (body["status"], body["title"]) == (status, HTTPStatus(status).phrase)
    assert KINDS[kind].status == status
    assert isinstance(body["detail"], str)
    assert 0 < len(body["detail"]) <= MAX_DETAIL
    assert " " in body["detail"].strip()
    return body["detail"]
