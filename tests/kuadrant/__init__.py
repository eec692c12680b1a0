"""Tests of the oracle of effective AuthPolicies against kuadrant-operator's own code, on generated clusters.

`make kuadrant` builds the program. It runs the operator's validation, folding and status as functions, without a
cluster. The resources that they wait for (Authorino, AuthConfigs, EnvoyFilters) exist and are ready.
"""
