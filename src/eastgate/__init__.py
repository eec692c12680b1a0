"""Eastgate: one authorization brain for Kubernetes traffic."""
