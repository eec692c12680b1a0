"""Enforcement by Envoy: the decisions of proxies (plan), their protobuf form (config), the control plane (server)."""
