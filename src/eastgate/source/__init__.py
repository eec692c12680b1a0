"""What a cluster has, read from its API server: once, or for as long as it changes."""
