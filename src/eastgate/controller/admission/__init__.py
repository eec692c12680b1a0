"""Admission and conversion: what an API server asks about changes of policies, and their versions.

Pure functions from a review to its answer, and the HTTPS server that API servers call.
"""
