"""Eastgate in a cluster: what it watches becomes what proxies enforce, and what statuses say of it."""
