"""Reading the requests of the demo's JSON services."""

import json

from starlette.requests import Request

MAX_BODY = 2**20


class BadRequestError(ValueError):
    """A request that cannot be answered; the message says what to send."""


async def asked(request: Request) -> dict[str, object]:
    """The JSON object in a request's body. Raises BadRequestError."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise BadRequestError(f"Send at most {MAX_BODY} bytes.")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError("Send a JSON object.") from error
    if not isinstance(found, dict):
        raise BadRequestError("Send a JSON object.")
    return found
