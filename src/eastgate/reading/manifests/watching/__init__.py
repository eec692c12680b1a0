"""Detects changes of manifests, and files that are still being written."""
