"""A mesh on one machine: Envoy proxies that enforce Eastgate's decisions."""
