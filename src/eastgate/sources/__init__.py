"""Manifests, read: files, folders and standard input become documents that know where they stand."""
