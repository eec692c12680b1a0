"""The AuthConfig that stands for the effective rules of today's AuthPolicies, as Kuadrant's operator makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastgate.dialects.kuadrant.schemes import Section
from eastgate.manifests.node import Node

_PATHS: Mapping[str, tuple[str, ...]] = {
    Section.AUTHENTICATION: ("authentication",),
    Section.METADATA: ("metadata",),
    Section.AUTHORIZATION: ("authorization",),
    Section.HEADERS: ("response", "success", "headers"),
    Section.DYNAMIC_METADATA: ("response", "success", "dynamicMetadata"),
    Section.CALLBACKS: ("callbacks",),
    Section.PATTERNS: ("patterns",),
    Section.CONDITIONS: ("when",),
    Section.UNAUTHENTICATED: ("response", "unauthenticated"),
    Section.UNAUTHORIZED: ("response", "unauthorized"),
}


def effective_config(parts: Mapping[tuple[str, str], Node]) -> dict[str, Any]:
    """Return the spec. Conditions are the gateway's own there; Authorino decides about them in the same way."""
    spec: dict[str, Any] = {}
    for (section, name), node in parts.items():
        *way, last = (*_PATHS[section], name) if name else _PATHS[section]
        mapping = spec
        for step in way:
            mapping = mapping.setdefault(step, {})
        plain: Any = node.plain()
        mapping[last] = plain["allOf"] if section == Section.PATTERNS else plain
    return spec
