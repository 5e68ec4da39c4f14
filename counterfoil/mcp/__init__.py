"""The directory, routing and audits as tools for agents, over the Model Context Protocol."""
