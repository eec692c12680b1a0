"""The control plane of proxies in the cluster: their identities, resources and acknowledgements."""
