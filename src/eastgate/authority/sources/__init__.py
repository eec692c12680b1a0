"""Sources of changes: files that are saved, and a cluster through its API server."""
