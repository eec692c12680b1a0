"""Envoy as the point of enforcement: its configuration made of policies, and the control plane that serves it."""
