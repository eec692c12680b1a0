"""The Secrets and ConfigMaps that other objects name: Eastgate reads only these from a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Final

from eastgate import dialects
from eastgate.authority.sources.documents import ref_of
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster.kinds import world_kinds
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem, label_key_problem, label_value_problem
from eastgate.cluster.unread import KINDS, UnreadEffect, resembling, unread_kind
from eastgate.dialects import registered
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Discovery, Resource
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.rendered import UnlistedKind
from eastgate.settings import Settings

# The kinds that are read from a cluster: policies, also those that Eastgate does not understand, and other objects.


_STAGES: Final = ("", "beta", "alpha")
_VERSION: Final = regex(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
BY_NAME: Final = frozenset({("", "Secret"), ("", "ConfigMap")})
"""Kinds of which Eastgate reads only the objects that another object names."""
LIST: Final = frozenset({"list"})
WATCH: Final = frozenset({"list", "watch"})


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """A kind to read, in the first of these versions that is served. Without versions, the server's preferred one."""

    group: str
    kind: str
    versions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


def watched_kinds() -> tuple[WatchedKind, ...]:
    """Return every kind that affects decisions, each once, with its newest version first.

    API servers leave out fields that an older version lacks, if they are asked for that version.
    """
    versions: dict[tuple[str, str], list[str]] = {}
    for kind in dialects.registered().kinds:
        versions.setdefault((kind.group, kind.kind), []).append(kind.version)
    kinds = {name: WatchedKind(*name, tuple(sorted(each, key=_age))) for name, each in versions.items()}
    for name in (*world_kinds(), *((each.group, each.kind) for each in KINDS if each.effect is not UnreadEffect.NONE)):
        kinds.setdefault(name, WatchedKind(*name))
    return tuple(kinds.values())


def _age(version: str) -> tuple[int, int, int]:
    """Return the rank of a version, as Kubernetes has it: `v1`, `v1beta2`, `v1beta1`, `v2alpha1`."""
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return len(_STAGES), 0, 0
    major, stage, minor = parts.groups()
    return _STAGES.index(stage or ""), -int(major), -int(minor or 0)


@dataclass(slots=True)
class ServedKinds:
    """Kinds as a server serves them, and `unknown` kinds with a reason: their objects, if any, cannot be listed.

    A kind in neither does not exist in the cluster.
    """

    resources: dict[WatchedKind, Resource] = field(default_factory=dict)
    unknown: dict[Resource, str] = field(default_factory=dict)


def served_kinds(
    discovery: Discovery,
    kinds: Iterable[WatchedKind],
    verbs: frozenset[str] = LIST,
    known: frozenset[tuple[str, str]] = frozenset(),
    unserved: frozenset[str] = frozenset(),
) -> ServedKinds:
    """Return the kinds in the versions in which the server serves them with these `verbs`.

    If Eastgate knows no served version of a kind, it takes the preferred one: its objects are rejected, and close their
    targets. While a version of a group is stale, other versions do not show whether the group has a kind: the stale
    version may have fields that they lack, or other objects. `known` are groups and versions that answered before:
    Eastgate assumes that they still serve the same kinds. `unserved` are definitions without a served version.
    """
    unknown = discovery.stale - known
    served = ServedKinds()
    for kind in kinds:
        resource = discovery.find(kind.group, kind.kind, kind.versions) or discovery.find(kind.group, kind.kind)
        version = resource.version if resource is not None else None
        stale = sorted(other for group, other in unknown if group == kind.group and other != version)
        if stale:
            why = f"the API server of {kind.group}/{stale[0]} does not answer"
            served.unknown[in_any_version(kind.group, kind.kind)] = why
        elif resource is not None and verbs <= resource.verbs:
            served.resources[kind] = resource
        elif resource is not None:
            why = f"the API server does not offer to {' and '.join(sorted(verbs - resource.verbs))} it"
            served.unknown[in_any_version(kind.group, kind.kind)] = why
        elif (name := next((name for name in unserved if _may_define(name, kind)), None)) is not None:
            why = f"no version of the definition {name} is served"
            served.unknown[in_any_version(kind.group, kind.kind)] = why
    return served


def _may_define(definition: str, kind: WatchedKind) -> bool:
    """Return whether a definition of this name may define a kind: the name has the plural, in lower case."""
    plural, _, group = definition.partition(".")
    return group == kind.group and plural.startswith(kind.kind.lower()[:-1])


def resembling_kinds(discovery: Discovery) -> tuple[WatchedKind, ...]:
    """Return served kinds that Eastgate does not know, with names like those of policies."""
    known = {(kind.group, kind.kind) for kind in watched_kinds()}
    return tuple(
        WatchedKind(resource.group, resource.kind)
        for resource in discovery
        if (resource.group, resource.kind) not in known
        and unread_kind(resource.group, resource.kind) is None
        and resembling(resource.group, resource.kind) is not None
    )


def in_any_version(group: str, kind: str) -> Resource:
    """Return the placeholder for a kind that cannot be listed, in any version."""
    return Resource(group, "*", kind, kind)


# Documents for kinds and namespaces that a reading of a cluster leaves out.


def unlisted(resource: Resource, reason: str, *, beyond: str | None = None) -> Document:
    """Return the document in place of the objects of a kind that were not read."""
    data: dict[str, Plain] = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "*"},
    }
    origin = UnlistedKind(str(resource), data, reason, beyond)
    return Document(resource.api_version, resource.kind, "*", None, None, data, origin)


_REFERENCE_LISTS: Final = frozenset({"certificateRefs", "caCertificateRefs", "signingKeyRefs"})
_REFERENCES: Final = ("SecretRef", "credentialsRef")
SELECTING: Final = frozenset({"apiKey", "x509", "mtls"})
"""The fields that select Secrets by their labels."""
_MAX_NAMED_OBJECTS: Final = (
    100  # objects of a namespace that are read one by one; beyond that, the whole namespace is read
)
_MAX_STREAMS: Final = 1000  # lists and watches of a kind; beyond that, the whole cluster is read


@dataclass(frozen=True, slots=True, order=True)
class NeededObjects:
    """Objects of a kind in a namespace (or in all): one by name, or those with some labels."""

    kind: str
    namespace: str | None
    name: str | None = None
    labels: str | None = None

    def __str__(self) -> str:
        what = self.name or (f"those with {self.labels}" if self.labels else "all")
        return f"{what} of {self.namespace}" if self.namespace is not None else what

    @property
    def fields(self) -> str | None:
        """Return the field selector for them."""
        return f"metadata.name={self.name}" if self.name is not None else None


class NeedIndex:
    """The Secrets and ConfigMaps that each object names, updated object by object."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_object: dict[PolicyRef, frozenset[NeededObjects]] = {}
        self._always = frozenset(NeededObjects("ConfigMap", namespace) for namespace in registered().config_namespaces)

    def put(self, obj: Mapping[str, Any]) -> bool:
        """Note the names in an object; return whether they changed."""
        ref = ref_of(obj)
        found = frozenset(needed_by(obj.get("spec"), obj["metadata"].get("namespace") or ""))
        before = self._by_object.pop(ref, frozenset())
        if found:
            self._by_object[ref] = found
        return found != before

    def remove(self, ref: PolicyRef) -> bool:
        """Forget the names in an object; return whether it had any."""
        return bool(self._by_object.pop(ref, None))

    def of(self, kind: str) -> list[NeededObjects]:
        """Return all needed objects of a kind. If they are many, return a wider need, which costs less."""
        named = self._always.union(*self._by_object.values())
        return sorted(_bounded(kind, (each for each in named if each.kind == kind)), key=str)


def _bounded(kind: str, named: Iterable[NeededObjects]) -> set[NeededObjects]:
    """Return needs that cover these and are few enough for a stream each: every user can add names to objects."""
    of_namespace: dict[str | None, set[NeededObjects]] = {}
    for each in named:
        of_namespace.setdefault(each.namespace, set()).add(each)
    bounded: set[NeededObjects] = set()
    for namespace, needs in of_namespace.items():
        bounded |= needs if len(needs) <= _MAX_NAMED_OBJECTS else {NeededObjects(kind, namespace)}
    return bounded if len(bounded) <= _MAX_STREAMS else {NeededObjects(kind, None)}


def needed_by(value: object, namespace: str) -> Iterator[NeededObjects]:
    """Yield the needs of an object with this content in a namespace."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named_at(key, inner, namespace)
            yield from needed_by(inner, namespace)
    elif isinstance(value, list):
        for item in value:
            yield from needed_by(item, namespace)


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
    selector = value.get("selector") if key in SELECTING and isinstance(value, Mapping) else None
    if isinstance(selector, Mapping):
        written = _written_selector(selector)
        if written:
            yield NeededObjects("Secret", None, labels=written)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and dns_subdomain_problem(value) is None


def _is_namespace(value: object) -> bool:
    return isinstance(value, str) and dns_label_problem(value) is None


def _written_selector(selector: Mapping[str, Any]) -> str | None:
    """Return a label selector in the form of a query; None for an invalid selector, which matches nothing."""
    try:
        return ",".join(_requirements(selector))
    except (TypeError, ValueError, AttributeError):
        return None


def _requirements(selector: Mapping[str, Any]) -> Iterator[str]:
    """Yield the requirements of a label selector. Raises ValueError, TypeError or AttributeError if it is invalid."""
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
