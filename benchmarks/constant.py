"""A server whose only answer never changes: what HTTP costs before there is anything to answer.

`python benchmarks/constant.py PORT BYTES` serves it as `counterfoil serve` does: the same framework, the same server.
"""

import sys

import uvicorn
from fastapi import FastAPI
from fastapi.responses import Response


def create_app(size: int) -> FastAPI:
    """The application; its answer has so many bytes."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    body = b"x" * size

    @app.get("/constant")
    async def constant() -> Response:
        return Response(body, media_type="application/json")

    return app


if __name__ == "__main__":
    port, size = map(int, sys.argv[1:])
    uvicorn.run(create_app(size), host="127.0.0.1", port=port, log_level="warning")
