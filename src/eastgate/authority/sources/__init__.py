"""Sources of changes: files that are saved, and a cluster that is read from its API server."""
