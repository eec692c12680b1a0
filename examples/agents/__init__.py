"""Agents, their tools and a gateway: `tour.py` is a tour, and `servers.py` has the MCP servers."""
