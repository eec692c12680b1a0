"""The parts of every control plane: Envoy resources, proxy sites, certificates, and the authorizer of gateways."""
