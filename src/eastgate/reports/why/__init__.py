"""Explains log lines by the present manifests: lines of Eastgate's proxies, of its authorizer, and of other proxies."""
