"""Running policies for real: Envoy proxies that enforce what Eastgate decides."""
