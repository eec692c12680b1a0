"""What exists: namespaces, workloads, services, gateways, routes; and who they are."""
