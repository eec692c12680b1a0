"""Codes of findings about Istio's policies: valid, and probably not what the author meant."""
