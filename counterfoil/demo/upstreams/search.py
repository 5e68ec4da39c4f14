"""A search over a small fixed collection, as an MCP server over HTTP at /mcp. It keeps no sessions."""

import re
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field
from starlette.applications import Starlette
from typing_extensions import TypedDict

from counterfoil import __version__

MOST_RESULTS = 3
_WORD = re.compile(r"[a-z0-9]+")


class Result(TypedDict):
    """One page that was found."""

    title: str
    url: str
    snippet: str


class Found(TypedDict):
    """The pages found for a query, the best first."""

    query: str
    results: list[Result]


def _page(name: str, title: str, snippet: str) -> Result:
    return {"title": title, "url": f"https://news.example/{name}", "snippet": snippet}


PAGES = (
    _page("vyper", "A new release of Vyper", "The Vyper compiler has a release that fixes five advisories."),
    _page("stake", "Stake weighted routing", "How routing weighs the stake of nodes, and what splitting it changes."),
    _page("vouchers", "Paying by the call", "Agents sign a voucher for every call; nodes settle the last one."),
    _page("bitcoin", "Bitcoin this week", "The bitcoin price moved little; trading volume fell for a third week."),
    _page("ether", "Ether and its fees", "Fees for ether transfers are at their lowest since the last upgrade."),
    _page("auditors", "Replaying a decision", "Auditors replay a routing decision from chain state and find the node."),
    _page("agents", "Agents that buy", "Software agents buy data, search and completions from competing nodes."),
    _page("models", "Small language models", "A small model in a package runs on two cores at forty tokens a second."),
)


def search(query: str) -> Found:
    """The pages that share words with the query: most shared words first, then in the collection's order."""
    wanted = set(_WORD.findall(query.lower()))
    shared = [(len(wanted & set(_WORD.findall(f"{page['title']} {page['snippet']}".lower()))), page) for page in PAGES]
    ranked = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    return {"query": query, "results": [page for _, page in ranked[:MOST_RESULTS]]}


def create_app() -> Starlette:
    """The server's HTTP application: any single `tools/call` is answered, without a handshake before it."""
    server = MCPServer("counterfoil-demo-search", version=__version__, log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

    @server.tool("web_search", "Search the news", annotations=reads)
    def web_search(query: Annotated[str, Field(min_length=1, max_length=200)]) -> Found:
        """Find pages by the words of a query."""
        return search(query)

    return server.streamable_http_app(stateless_http=True)
