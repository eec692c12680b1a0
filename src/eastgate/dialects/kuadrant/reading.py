"""AuthPolicy, read: checked against its shape, and given its meaning."""

from __future__ import annotations

from dataclasses import replace

from eastgate.dialects.base import reader
from eastgate.dialects.kuadrant import meaning, shapes, validation

__all__ = ["read"]

_SHAPE = replace(shapes.AUTH_POLICY, rules=(*shapes.AUTH_POLICY.rules, validation.own_namespace))

read = reader(_SHAPE, lambda settings: settings, meaning.auth_policy)
