"""Expressions compared with those of Authorino: its selectors, its CEL and its Rego, recorded and run."""
