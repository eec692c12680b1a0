"""What a sidecar can see, and what Envoy can test exactly as a policy means it. Whatever is near is not enough."""

from __future__ import annotations

import re

from eastgate.diagnostics import Code
from eastgate.policy import Computed, Is, OneOf
from eastgate.policy.attributes import ADDRESS, HOST, IDENTITY, MESH_NAME, METHOD, PATH, PORT, Attribute
from eastgate.targets.envoy.codes import NOT_A_TEST, NOT_AN_ATTRIBUTE
from eastgate.world import matches_pattern

__all__ = ["QUERY", "obstacle"]

QUERY = "query parameter"
_SEEN = frozenset({ADDRESS, HOST, IDENTITY, MESH_NAME, METHOD, PATH, PORT})
_SEEN_NAMES = frozenset({"header", QUERY})
_QUERY_NAME = re.compile(r"[A-Za-z0-9._~-]+")
_ENVOYS_HEADERS = frozenset(
    {
        *("connection", "host", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"),
        *("x-forwarded-client-cert", "x-forwarded-proto"),
    }
)


def obstacle(atom: Is | Computed) -> tuple[Code, str] | None:
    """Why an atom cannot be enforced; None where it can."""
    attributes = (atom.attribute,) if isinstance(atom, Is) else atom.attributes
    unseen = [one for one in attributes if one not in _SEEN and one.name not in _SEEN_NAMES]
    if unseen:
        return NOT_AN_ATTRIBUTE, f"a sidecar does not know the {unseen[0]}"
    return None if _is_exact(atom) else (NOT_A_TEST, f"Envoy has no test that is exactly `{atom}`")


def _is_exact(atom: Is | Computed) -> bool:
    """In a query Envoy does not tell a plus from a space, nor nothing from absent."""
    if isinstance(atom, Computed):
        if atom.pattern is None:
            return False
        attribute, pattern = atom.pattern
        if attribute.name != QUERY:
            return not _is_envoys(attribute)
        return _names_query(attribute) and not matches_pattern(pattern, "")
    if atom.attribute.name != QUERY:
        return not _is_envoys(atom.attribute)
    values = atom.matcher.values if isinstance(atom.matcher, OneOf) else {"+"}
    return _names_query(atom.attribute) and not any(str(one) == "" or set(str(one)) & set("+ ") for one in values)


def _is_envoys(attribute: Attribute) -> bool:
    """Whether it is a header that Envoy adds, takes away or calls otherwise before a policy can look at it."""
    return attribute.is_header and (attribute.key in _ENVOYS_HEADERS or attribute.key.startswith("x-envoy-"))


def _names_query(attribute: Attribute) -> bool:
    return _QUERY_NAME.fullmatch(attribute.key) is not None
