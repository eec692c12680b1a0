"""Explains the lines of logs by the manifests of today: of Eastgate's proxies, of its authorizer, and of others."""
