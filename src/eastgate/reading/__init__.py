"""Readers of all input: manifests with positions, objects of an API server, tokens, MCP messages."""
