"""Tells whether an auth scheme looks for Secrets in a namespace of its own."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    ApiKeys,
    Introspection,
    SecretRef,
    SigningKey,
    UmaResources,
)


def needs_secrets(part: object) -> bool:
    """Return whether a part of a scheme looks for Secrets in its own namespace."""
    if isinstance(part, ApiKeys | X509) and not part.all_namespaces:
        return True
    if isinstance(part, SecretRef | SigningKey | Introspection | UmaResources):
        return True
    if isinstance(part, tuple | list):
        return any(map(needs_secrets, part))
    return is_dataclass(part) and any(needs_secrets(getattr(part, field.name)) for field in fields(part))
