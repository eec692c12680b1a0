"""What every control plane does: what proxies enforce, their sites and certificates, and the authorizer of gateways."""
