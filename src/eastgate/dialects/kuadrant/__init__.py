"""Kuadrant's AuthPolicy: requests to a route or a Gateway that must pass an auth scheme."""
