"""Codes of lint's findings about AuthConfigs."""
