"""Custom resources of unread kinds: their operators may make pods without a manifest, and add labels to them.

Only their heads are read, and whether they describe pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.heads import metadata_in
from eastgate.reading.manifests.node import Plain

_DEFINITION: Final = "CustomResourceDefinition"
_DEFINED = regex(r"""(?m)^[ ]+group:[ ]*["']?([\w.-]+)""")
_PODS: Final = frozenset(
    {"containers", "image", "imageName", "instances", "podTemplate", "replicas", "volumeClaimTemplate"}
)
"""Fields in which custom resources of all kinds describe pods."""
_PODS_TEXT = regex(rf"""(?m)^[ -]*["']?(?:{"|".join(sorted(_PODS))})["']?[ ]*:""")
_KUBERNETES: Final = ("k8s.io", "kubernetes.io")


@dataclass(slots=True)
class CustomResources:
    """The API groups of custom resources and CRDs, and the namespaces in which one describes pods."""

    groups: set[str] = field(default_factory=set)
    making: set[str] = field(default_factory=set)

    def add_text(self, api_version: str, kind: str, text: str, namespace: str) -> None:
        """Add the object of a text; `namespace` is its namespace if the text names none."""
        if kind == _DEFINITION:
            self.groups.update(_DEFINED.findall(text)[:1])
        elif is_extension(group := api_version.rpartition("/")[0]):
            self.groups.add(group)
            if _PODS_TEXT.search(text) is not None:
                self.making.add(metadata_in(text).get("namespace") or namespace)

    def add(self, group: str, kind: str, content: dict[str, Plain], namespace: str) -> None:
        """Add an object that was read."""
        spec = content.get("spec")
        if kind == _DEFINITION:
            defined = spec.get("group") if isinstance(spec, dict) else None
            self.groups |= {defined} if isinstance(defined, str) else set()
        elif is_extension(group):
            self.groups.add(group)
            if _describes_pods(spec):
                self.making.add(namespace)

    def merged(self, others: Iterable[CustomResources]) -> CustomResources:
        """Return the union of these and others."""
        every = [self, *others]
        return CustomResources(
            {group for each in every for group in each.groups}, {name for each in every for name in each.making}
        )

    def labels(self, key: str) -> bool:
        """Return whether a label belongs to the domain of one of the groups, so that its controller sets it."""
        domain, slash, _ = key.partition("/")
        if not slash or "." not in domain or domain in _KUBERNETES:
            return False
        return any(f".{group}".endswith(f".{domain}") or domain.endswith(f".{group}") for group in self.groups)


def is_extension(group: str) -> bool:
    """Return whether an API group is not part of Kubernetes."""
    return "." in group and (not group.endswith(".k8s.io") or group.startswith(("gateway.", "policy.networking.")))


def _describes_pods(value: Plain) -> bool:
    if isinstance(value, dict):
        return not _PODS.isdisjoint(value) or any(map(_describes_pods, value.values()))
    return isinstance(value, list) and any(map(_describes_pods, value))
