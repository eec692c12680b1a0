"""Input becomes data: manifests with positions, objects of an API server, tokens, MCP messages."""
