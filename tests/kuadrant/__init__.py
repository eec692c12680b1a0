"""kuadrant-operator's own code beside the oracle of effective AuthPolicies, on generated clusters.

`make kuadrant` builds the program, which runs the operator's validation, folding and status as functions, without a
cluster: what they wait for (Authorino, AuthConfigs, EnvoyFilters) is there and ready.
"""
