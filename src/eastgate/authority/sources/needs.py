"""The Secrets and ConfigMaps that other objects name: of all that a cluster has, only these are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from eastgate.authority.sources.documents import ref_of
from eastgate.basics.records import dataclass
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem, label_key_problem, label_value_problem
from eastgate.dialects import registered
from eastgate.ir import PolicyRef
from eastgate.settings import Settings

_REFERENCE_LISTS: Final = frozenset({"certificateRefs", "caCertificateRefs", "signingKeyRefs"})
_REFERENCES: Final = ("SecretRef", "credentialsRef")
_SELECTING: Final = frozenset({"apiKey", "x509", "mtls"})
_MOST_NAMED: Final = 100  # objects of a namespace that are read one by one; of more, all of the namespace are
_MOST_STREAMS: Final = 1000  # lists and watches of a kind; of more, all of the cluster are read


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
        self._always = frozenset(NeededObjects("ConfigMap", namespace) for namespace in registered().config_namespaces)

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
        """Return all that is named of a kind, and more than that where so much is named that all is less work."""
        named = self._always.union(*self._by_object.values())
        return sorted(_bounded(kind, (each for each in named if each.kind == kind)), key=str)


def _bounded(kind: str, named: Iterable[NeededObjects]) -> set[NeededObjects]:
    """Return needs that cover these, few enough for a stream each: whoever writes an object names what they like."""
    of_namespace: dict[str | None, set[NeededObjects]] = {}
    for each in named:
        of_namespace.setdefault(each.namespace, set()).add(each)
    bounded: set[NeededObjects] = set()
    for namespace, needs in of_namespace.items():
        bounded |= needs if len(needs) <= _MOST_NAMED else {NeededObjects(kind, namespace)}
    return bounded if len(bounded) <= _MOST_STREAMS else {NeededObjects(kind, None)}


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
        if isinstance(reference, Mapping):
            kind, name = reference.get("kind") or "Secret", reference.get("name")
            home = reference.get("namespace") or namespace
            if kind in ("Secret", "ConfigMap") and _is_name(name) and _is_namespace(home):
                yield NeededObjects(kind, home, name)
    selector = value.get("selector") if key in _SELECTING and isinstance(value, Mapping) else None
    if isinstance(selector, Mapping):
        written = _written_selector(selector)
        if written:
            yield NeededObjects("Secret", None, labels=written)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and dns_subdomain_problem(value) is None


def _is_namespace(value: object) -> bool:
    return isinstance(value, str) and dns_label_problem(value) is None


def _written_selector(selector: Mapping[str, Any]) -> str | None:
    """Return a label selector as a query has it; None for one that no API server would accept, and nothing matches."""
    try:
        return ",".join(_requirements(selector))
    except (TypeError, ValueError, AttributeError):
        return None


def _requirements(selector: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requirements of a label selector. Raises ValueError, TypeError or AttributeError for what is none."""
    for name, wanted in (selector.get("matchLabels") or {}).items():
        yield f"{_key(name)}={_value(wanted)}"
    for expression in selector.get("matchExpressions") or ():
        key, values = _key(expression.get("key")), ",".join(map(_value, expression.get("values") or ()))
        match expression.get("operator"):
            case "In":
                yield f"{key} in ({values})"
            case "NotIn":
                yield f"{key} notin ({values})"
            case "Exists":
                yield f"{key}"
            case "DoesNotExist":
                yield f"!{key}"
            case _:
                raise ValueError("there is no such operator")


def _key(value: str) -> str:
    if label_key_problem(value):
        raise ValueError("a key that no label has")
    return value


def _value(value: str) -> str:
    if label_value_problem(value):
        raise ValueError("a value that no label has")
    return value
