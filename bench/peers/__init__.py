"""Peers: what the same questions cost elsewhere."""
