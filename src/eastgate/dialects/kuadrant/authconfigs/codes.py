"""Codes of the errors in an AuthConfig. Those of its scheme are in `schemes`."""
