"""How tests are shared out among processes, and servers that tests of several folders share.

Each server is started once in a process, by the first test that asks for it.
"""

import pytest

# Folders whose tests share something that takes long to set up.
TOGETHER = ("demo", "stateful", "coverage")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests of one file, or of one such folder, run in one process: they share their chains."""
    for item in items:
        together = [name for name in TOGETHER if name in item.path.parts]
        item.add_marker(
            pytest.mark.xdist_group(together[0] if together else f"{item.path.parent.name}.{item.path.stem}")
        )


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
