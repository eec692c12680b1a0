"""Foundations of every package: diagnostics, records, regular expressions, caches, background tasks, HTTP."""
