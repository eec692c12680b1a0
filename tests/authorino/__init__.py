"""A real Authorino beside Eastgate: every AuthPolicy row of the conformance suite, and converted configurations.

`make authorino` builds the programs and runs this in a network namespace, since Authorino listens on every address.
"""
