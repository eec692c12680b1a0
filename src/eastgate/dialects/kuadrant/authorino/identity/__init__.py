"""Recognizes callers: one module for each way to do it."""

from eastgate.dialects.kuadrant.authorino.identity.recognition import recognize

__all__ = ["recognize"]
