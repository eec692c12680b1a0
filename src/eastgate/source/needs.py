"""The Secrets and ConfigMaps that other objects name: of all that a cluster has, only these are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from eastgate.ir import PolicyRef
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.source.documents import ref_of

__all__ = ["NeedIndex", "NeededObjects"]

_MESH_CONFIG_NAMESPACES: Final = ("istio-system",)
_REFERENCE_LISTS: Final = frozenset({"certificateRefs", "caCertificateRefs", "signingKeyRefs"})
_REFERENCES: Final = ("SecretRef", "credentialsRef")
_SELECTING: Final = frozenset({"apiKey", "x509", "mtls"})


@dataclass(frozen=True, slots=True, order=True)
class NeededObjects:
    """Objects of a kind in a namespace (or in all): the one of a name, or those with some labels."""

    kind: str
    namespace: str | None
    name: str | None = None
    labels: str | None = None

    def __str__(self) -> str:
        what = self.name or (f"those with {self.labels}" if self.labels else "all")
        return f"{what} of {self.namespace}" if self.namespace is not None else what

    @property
    def fields(self) -> str | None:
        """Return the field selector for it."""
        return f"metadata.name={self.name}" if self.name is not None else None


class NeedIndex:
    """Who names which Secrets and ConfigMaps, kept up to date one object at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_object: dict[PolicyRef, frozenset[NeededObjects]] = {}
        self._always = frozenset(NeededObjects("ConfigMap", namespace) for namespace in _MESH_CONFIG_NAMESPACES)

    def put(self, obj: Mapping[str, Any]) -> bool:
        """Note what an object names; return whether that is something else than before."""
        ref = ref_of(obj)
        found = frozenset(_named_in(obj.get("spec"), obj["metadata"].get("namespace") or ""))
        before = self._by_object.pop(ref, frozenset())
        if found:
            self._by_object[ref] = found
        return found != before

    def remove(self, ref: PolicyRef) -> bool:
        """Forget what an object names; return whether it named anything."""
        return bool(self._by_object.pop(ref, None))

    def of(self, kind: str) -> list[NeededObjects]:
        """Return all that is named of a kind."""
        named = self._always.union(*self._by_object.values())
        return sorted((each for each in named if each.kind == kind), key=str)


def _named_in(value: object, namespace: str) -> Iterator[NeededObjects]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named_at(key, inner, namespace)
            yield from _named_in(inner, namespace)
    elif isinstance(value, list):
        for item in value:
            yield from _named_in(item, namespace)


def _named_at(key: str, value: object, namespace: str) -> Iterator[NeededObjects]:
    references = value if key in _REFERENCE_LISTS and isinstance(value, list) else []
    if key.endswith(_REFERENCES):
        references = [value]
    for reference in references:
        if isinstance(reference, Mapping) and isinstance(reference.get("name"), str):
            kind = reference.get("kind") or "Secret"
            if kind in ("Secret", "ConfigMap"):
                yield NeededObjects(kind, reference.get("namespace") or namespace, reference["name"])
    selector = value.get("selector") if key in _SELECTING and isinstance(value, Mapping) else None
    if isinstance(selector, Mapping):
        written = ",".join(_requirements(selector))
        if written:
            yield NeededObjects("Secret", None, labels=written)


def _requirements(selector: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requirements of a label selector as a query has them."""
    for name, wanted in (selector.get("matchLabels") or {}).items():
        yield f"{name}={wanted}"
    for expression in selector.get("matchExpressions") or ():
        key, values = expression.get("key"), ",".join(expression.get("values") or ())
        match expression.get("operator"):
            case "In":
                yield f"{key} in ({values})"
            case "NotIn":
                yield f"{key} notin ({values})"
            case "Exists":
                yield f"{key}"
            case "DoesNotExist":
                yield f"!{key}"
