"""The controller: it watches a cluster, configures its proxies, and writes the statuses of policies."""
