"""The control plane of proxies in the cluster: who they are, what they get, and what they have acknowledged."""
