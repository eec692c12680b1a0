"""AuthPolicy, read: checked against its shape, and given its meaning."""

from __future__ import annotations

from eastgate.dialects.base import reader
from eastgate.dialects.kuadrant import meaning, shapes

__all__ = ["read"]

read = reader(shapes.AUTH_POLICY, lambda settings: settings, meaning.auth_policy)
