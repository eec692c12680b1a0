"""Admission and conversion: the webhooks for changes of policies, and for their versions.

The package has pure functions from a review to its answer, and the HTTPS server that API servers call.
"""
