"""The registered dialects, their kinds by name, and the use of these names by other APIs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from eastgate.cluster import Backend
from eastgate.cluster.unread import unread_kind
from eastgate.dialects.base import Dialect, Kind, NameUse, Widen
from eastgate.reading.manifests import Document
from eastgate.settings import Settings

Key = tuple[str, str, str]


class Registry:
    """Dialects, and their kinds by group, version and kind: `policies`, `objects`, and all kinds that are `read`."""

    def __init__(self, dialects: Sequence[Dialect[Any]]) -> None:
        self.dialects = tuple(dialects)
        self.policies: dict[Key, Kind[Any]] = {kind.key: kind for dialect in dialects for kind in dialect.kinds}
        self.objects: dict[Key, Kind[Backend]] = {kind.key: kind for dialect in dialects for kind in dialect.objects}
        self.read = {**self.policies, **self.objects}
        self.groups = frozenset(group for group, _, _ in self.read)
        self.bystanders = frozenset(name for dialect in dialects for name in dialect.bystanders)
        self.cluster_scoped = frozenset(kind.kind for kind in self.read.values() if kind.cluster_scoped)
        self.name_uses = {  # a name that other APIs use is never `OURS_ALONE`
            kind.kind: use
            for use in (NameUse.OURS_ALONE, NameUse.OTHER_GROUPS)
            for kind in self.policies.values()
            if kind.name_use is use
        }
        self._by_model: dict[type, Dialect[Any]] = {}

    @cached_property
    def kinds(self) -> tuple[Kind[Any], ...]:
        """Return every kind that is read, dialect by dialect."""
        return tuple(kind for dialect in self.dialects for kind in (*dialect.kinds, *dialect.objects))

    @cached_property
    def policy_kinds(self) -> frozenset[str]:
        """Return the names of all kinds of policies."""
        return frozenset(kind for _, _, kind in self.policies)

    def is_unread(self, group: str, kind: str) -> bool:
        """Return whether a kind is known and not read. Kinds that a dialect reads override the catalogue."""
        return unread_kind(group, kind) is not None and (group, kind) not in self._read_names

    def widening(self, document: Document) -> Widen | None:
        """Return the function that widens the targets of a policy with errors. An unknown group may be misspelt."""
        for dialect in self.dialects:
            kinds = [kind for kind in dialect.kinds if document.group not in self.groups and kind.kind == document.kind]
            if dialect.widen is not None and (kinds or any(kind.group == document.group for kind in dialect.kinds)):
                return dialect.widen
        return None

    @cached_property
    def served_kinds(self) -> frozenset[tuple[str, str]]:
        """Return group and kind of the policies that only Eastgate defines and enforces."""
        return frozenset((kind.group, kind.kind) for kind in self.policies.values() if kind.served is not None)

    @cached_property
    def surrounding_kinds(self) -> frozenset[str]:
        """Return the kinds of objects that layers at any point may depend on."""
        return frozenset(kind for dialect in self.dialects for kind in dialect.surroundings.kinds)

    @cached_property
    def config_namespaces(self) -> frozenset[str]:
        """Return the namespaces whose ConfigMaps configure a policy API."""
        return frozenset(name for dialect in self.dialects for name in dialect.surroundings.config_namespaces)

    @cached_property
    def pod_annotations(self) -> tuple[str, ...]:
        """Return the annotations of a pod that verdicts depend on."""
        return tuple(sorted(name for dialect in self.dialects for name in dialect.surroundings.pod_annotations))

    @cached_property
    def deciding_annotations(self) -> tuple[str, ...]:
        """Return the annotations that change whether and how a policy decides."""
        return tuple(sorted({name for dialect in self.dialects for name in dialect.deciding_annotations}))

    @cached_property
    def selected_kinds(self) -> frozenset[tuple[str, str]]:
        """Return group and kind of the policies that other policies select by labels."""
        return frozenset((kind.group, kind.kind) for kind in self.policies.values() if kind.selected)

    def root_namespaces(self, settings: Settings) -> frozenset[str]:
        """Return the namespaces whose policies apply to all namespaces."""
        found = (dialect.surroundings.root_namespace for dialect in self.dialects)
        return frozenset(root_namespace(settings) for root_namespace in found if root_namespace is not None)

    def is_about_callers(self, group: str, kind: str, manifest: Mapping[str, Any]) -> bool:
        """Return whether an object of an API server restricts the connections that pods may open."""
        kinds = (each for each in self.policies.values() if (each.group, each.kind) == (group, kind))
        return any(each.is_about_callers is not None and each.is_about_callers(manifest) for each in kinds)

    @cached_property
    def network_kinds(self) -> frozenset[tuple[str, str]]:
        """Return group and kind of the policies that the network enforces."""
        dialects = (dialect for dialect in self.dialects if dialect.ends is not None)
        return frozenset((kind.group, kind.kind) for dialect in dialects for kind in dialect.kinds)

    @cached_property
    def _read_names(self) -> frozenset[tuple[str, str]]:
        return frozenset((group, kind) for group, _, kind in self.read)

    def of_model(self, model: type) -> Dialect[Any]:
        """Return the dialect of the policies of a type."""
        if model not in self._by_model:
            owners = [dialect for dialect in self.dialects if issubclass(model, dialect.model)]
            if not owners:
                raise TypeError(f"no dialect that is registered has policies of the type {model.__qualname__}")
            self._by_model[model] = owners[0]
        return self._by_model[model]
