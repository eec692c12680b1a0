"""Enforcement by Envoy: what its proxies decide (plan), written in its protobuf (config), and served (server)."""
