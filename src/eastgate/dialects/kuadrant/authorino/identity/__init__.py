"""Recognition of callers, with one module for each method."""

from eastgate.dialects.kuadrant.authorino.identity.recognition import recognize

__all__ = ["recognize"]
