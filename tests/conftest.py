"""Servers that tests of several folders share: each is started once, by the first test that asks for it."""

import pytest


@pytest.fixture(scope="session")
def llama():
    """The URL of a real completion server with a small model."""
    from tests.support.llama import llama_server

    with llama_server() as url:
        yield url


@pytest.fixture(scope="session")
def price_api():
    """The URL of the demo's price API."""
    yield from _upstream("data")


@pytest.fixture(scope="session")
def search_server():
    """The URL of the demo's MCP server, without /mcp."""
    yield from _upstream("search")


@pytest.fixture(scope="session")
def completion_server():
    """The URL of the demo's completion server, without /v1."""
    yield from _upstream("completion")


def _upstream(kind):
    from tests.support.upstreams import upstream

    with upstream(kind) as (_, url):
        yield url
