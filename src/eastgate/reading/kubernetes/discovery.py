"""The kinds that an API server serves, read from its aggregated discovery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from eastgate.basics.records import dataclass

# A kind that the API server serves, and the paths of its objects.


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    verbs: frozenset[str] = frozenset({"get", "list", "watch"})

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Return the `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of a collection or of one object.

        Without a namespace, return the collection of all namespaces.
        """
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part is not None]
        return "/" + "/".join(quote(part, safe="") for part in parts)


_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Discovery:
    """The served kinds, by group and kind. Versions are in the order of the server's preference."""

    ACCEPT: Final = f"{_AGGREGATED},application/json"

    def __init__(
        self,
        resources: Iterable[Resource],
        stale: frozenset[tuple[str, str]] = frozenset(),
        defined: frozenset[str] = frozenset(),
    ) -> None:
        self._by_name: dict[tuple[str, str], list[Resource]] = {}
        for resource in resources:
            self._by_name.setdefault((resource.group, resource.kind), []).append(resource)
        self.stale = stale
        """Groups and versions whose kinds are unknown: their API server does not answer, or lists no kinds."""
        known = (each for of_kind in self._by_name.values() for each in of_kind)
        self.current = frozenset((resource.group, resource.version) for resource in known) - stale
        """Groups and versions whose kinds are known."""
        self.defined = defined
        """The names of CRDs, as `str` of a Resource. Their objects exist, served or not."""

    @classmethod
    def of(cls, lists: Iterable[Mapping[str, Any]], defined: Iterable[str] = ()) -> Discovery:
        """Read the answers of `/api` and `/apis`. Raises ValueError if the server does not aggregate discovery."""
        resources: list[Resource] = []
        stale: set[tuple[str, str]] = set()
        for listed in lists:
            if listed.get("kind") != "APIGroupDiscoveryList":
                raise ValueError("the API server is older than Kubernetes 1.27: it does not aggregate discovery")
            for group in listed.get("items") or ():
                name = (group.get("metadata") or {}).get("name", "")
                for version in group.get("versions") or ():
                    served = list(_resources(name, version))
                    if version.get("freshness") != "Current" or not served:
                        stale.add((name, version["version"]))
                    resources += served
        return cls(resources, frozenset(stale), frozenset(defined))

    def find(self, group: str, kind: str, versions: Iterable[str] = ()) -> Resource | None:
        """Return a kind in the first of these versions that is served; without versions, in the preferred one."""
        served = self._by_name.get((group, kind), [])
        wanted = list(versions)
        if not wanted:
            return served[0] if served else None
        by_version = {resource.version: resource for resource in served}
        return next((by_version[version] for version in wanted if version in by_version), None)

    @property
    def unserved(self) -> frozenset[str]:
        """Return the names of CRDs without a served version."""
        return self.defined - {str(resource) for of_kind in self._by_name.values() for resource in of_kind}

    def __iter__(self) -> Iterator[Resource]:
        """Yield each kind once, in its preferred version."""
        return (resources[0] for resources in self._by_name.values())


def _resources(group: str, version: Mapping[str, Any]) -> Iterator[Resource]:
    for entry in version.get("resources") or ():
        response = entry.get("responseKind") or {}
        yield Resource(
            group,
            version["version"],
            entry["resource"],
            response.get("kind") or "",
            entry.get("scope") == "Namespaced",
            frozenset(entry.get("verbs") or ()),
        )
