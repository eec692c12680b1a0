"""Codes of lint's findings about today's AuthPolicies."""
