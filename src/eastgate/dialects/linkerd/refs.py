"""References to other objects, as Linkerd compares them: without letter case, and `core` is the empty group."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from eastgate.dialects.linkerd.authorizations import WORKLOAD_KINDS
from eastgate.dialects.linkerd.model import GROUP
from eastgate.sources.node import Node
from eastgate.world import GATEWAY_GROUP

__all__ = ["AUTHENTICATIONS", "IDENTITIES", "TARGETS", "Kind", "canonical", "known"]

Kind: TypeAlias = tuple[str, str]  # group and kind, as they are properly spelt


@dataclass(frozen=True, slots=True)
class Support:
    """Who supports a target: Linkerd as it runs, or only the proposal."""

    only_proposed: bool


TARGETS: dict[Kind, Support] = {
    (GROUP, "Server"): Support(False),
    ("", "Namespace"): Support(False),
    (GROUP, "HTTPRoute"): Support(False),
    (GATEWAY_GROUP, "HTTPRoute"): Support(False),
    (GATEWAY_GROUP, "GRPCRoute"): Support(False),
    **dict.fromkeys(sorted(WORKLOAD_KINDS), Support(True)),
}
IDENTITIES: tuple[Kind, ...] = (("", "ServiceAccount"), ("", "Namespace"))
AUTHENTICATIONS: tuple[Kind, ...] = (
    (GROUP, "MeshTLSAuthentication"),
    (GROUP, "NetworkAuthentication"),
    ("", "ServiceAccount"),
)
_PROPER = {
    (group.lower(), kind.lower()): (group, kind)
    for group, kind in (*TARGETS, *IDENTITIES, *AUTHENTICATIONS, ("", "Service"), (GROUP, "EgressNetwork"))
}


def canonical(ref: Node) -> Kind:
    """Group and kind of a reference, properly spelt where they are known."""
    group = ref.get("group")
    written = group.text if group is not None else ""
    home = "" if written.lower() == "core" else written
    return _PROPER.get((home.lower(), ref["kind"].text.lower()), (home, ref["kind"].text))


def known(kinds: Iterable[Kind]) -> list[str]:
    """The kinds, for a sentence."""
    return list(dict.fromkeys(f"{kind}.{group}" if group else kind for group, kind in kinds))
