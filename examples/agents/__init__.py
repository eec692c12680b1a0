"""Agents, their tools and a gateway: `tour.py` shows them, `servers.py` are the MCP servers."""
