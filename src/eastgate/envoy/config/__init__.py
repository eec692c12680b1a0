"""Envoy's configuration: the decisions of policies in the form of Envoy's resources."""
