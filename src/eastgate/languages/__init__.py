"""The languages that policies contain: CEL, Rego, and JSON Web Tokens."""
