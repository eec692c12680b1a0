"""Recognizes callers: one module for each way to do it."""

from eastgate.authconfig.identity.recognition import recognized

__all__ = ["recognized"]
