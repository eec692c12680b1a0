"""The AuthConfig for the effective rules of today's AuthPolicies, as Kuadrant's operator makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastgate.dialects.kuadrant.schemes import SchemeSection
from eastgate.reading.manifests.node import Node

_PATHS: Mapping[str, tuple[str, ...]] = {
    SchemeSection.AUTHENTICATION: ("authentication",),
    SchemeSection.METADATA: ("metadata",),
    SchemeSection.AUTHORIZATION: ("authorization",),
    SchemeSection.HEADERS: ("response", "success", "headers"),
    SchemeSection.DYNAMIC_METADATA: ("response", "success", "dynamicMetadata"),
    SchemeSection.CALLBACKS: ("callbacks",),
    SchemeSection.PATTERNS: ("patterns",),
    SchemeSection.CONDITIONS: ("when",),
    SchemeSection.UNAUTHENTICATED: ("response", "unauthenticated"),
    SchemeSection.UNAUTHORIZED: ("response", "unauthorized"),
}


def effective_config(parts: Mapping[tuple[str, str], Node]) -> dict[str, Any]:
    """Return the spec.

    In Kuadrant the gateway evaluates the conditions. Here Authorino evaluates them, with the same result.
    """
    spec: dict[str, Any] = {}
    for (section, name), node in parts.items():
        *way, last = (*_PATHS[section], name) if name else _PATHS[section]
        mapping = spec
        for step in way:
            mapping = mapping.setdefault(step, {})
        plain: Any = node.plain()
        mapping[last] = plain["allOf"] if section == SchemeSection.PATTERNS else plain
    return spec
