"""Services that a node can stand in front of: a price API, a search over MCP, and a completion server."""
