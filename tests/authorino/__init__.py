"""Tests against a real Authorino: every row about AuthPolicies and AuthConfigs, and converted and documented
AuthConfigs.

`make authorino` builds the programs and runs this in a network namespace, because Authorino listens on every address.
"""
