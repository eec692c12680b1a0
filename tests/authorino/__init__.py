"""A real Authorino beside Eastgate: every row about AuthPolicies and AuthConfigs, converted and documented AuthConfigs.

`make authorino` builds the programs and runs this in a network namespace, since Authorino listens on every address.
"""
