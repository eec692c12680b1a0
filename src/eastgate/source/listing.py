"""One reading of a cluster: what it has now, as manifests. It is what `--cluster` gives to offline commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from eastgate.api.reading import Manifests, sort_documents
from eastgate.diagnostics import Diagnostic, Reporter
from eastgate.kubernetes import ApiError, Connection, JsonObject, Resource, connect
from eastgate.manifests import Document
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.source.documents import document_of, relevant
from eastgate.source.kinds import BY_NAME, served_kinds, watched_kinds
from eastgate.source.named import Naming
from eastgate.source.unknown import unlisted
from eastgate.unread import Unread

__all__ = ["ClusterOptions", "ClusterReading", "read_cluster"]

_AT_ONCE = 8  # requests


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Which cluster, and which part of it: one namespace, or all."""

    kubeconfig: str | os.PathLike[str] | None = None
    context: str | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """What was read of a cluster, and the errors in objects that are no policies, which were set aside."""

    manifests: Manifests
    set_aside: tuple[Diagnostic, ...]
    server: str


def read_cluster(
    options: ClusterOptions, settings: Settings, on_kind: Callable[[int, int], None] | None = None
) -> ClusterReading:
    """Read everything that a cluster has now. `on_kind` is told how many kinds of how many were read.

    Raises KubeconfigError, UnreachableError and ApiError where nothing can be read.
    """
    return asyncio.run(_read(options, settings, on_kind))


async def _read(
    options: ClusterOptions, settings: Settings, on_kind: Callable[[int, int], None] | None
) -> ClusterReading:
    async with connect(options.kubeconfig, options.context) as connection:
        listing = _Listing(connection, options.namespace)
        documents, unread = await listing.read(settings, on_kind)
    manifests = sort_documents(documents, settings, Reporter())
    manifests.unread.objects += unread
    errors = manifests.set_aside()
    return ClusterReading(manifests, tuple(errors), connection.server)


class _Listing:
    def __init__(self, connection: Connection, namespace: str | None) -> None:
        self._connection = connection
        self._namespace = namespace
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._unread: list[Unread] = []

    async def read(
        self, settings: Settings, on_kind: Callable[[int, int], None] | None
    ) -> tuple[list[Document], list[Unread]]:
        served = served_kinds(await self._connection.discover(), watched_kinds())
        resources = {(kind.group, kind.kind): resource for kind, resource in served.items()}
        whole = [resource for name, resource in resources.items() if name not in BY_NAME]
        done = 0

        async def read(resource: Resource) -> list[JsonObject]:
            nonlocal done
            objects = await self._list(resource)
            done += 1
            if on_kind is not None:
                on_kind(done, len(whole))
            return objects

        found = await asyncio.gather(*map(read, whole))
        objects = [relevant(obj) for of_kind in found for obj in of_kind]
        naming = Naming(settings)
        for obj in objects:
            naming.put(obj)
        named = [resource for name, resource in resources.items() if name in BY_NAME]
        objects += [relevant(obj) for resource in named for obj in await self._list_named(resource, naming)]
        return [document_of(obj, settings.namespace) for obj in objects], self._unread

    async def _list(self, resource: Resource) -> list[JsonObject]:
        namespace = self._namespace if resource.namespaced else None
        try:
            async with self._slots:
                if resource.kind == "Namespace" and not resource.group and self._namespace is not None:
                    return [await self._connection.get(resource, self._namespace)]
                objects, _ = await self._connection.list(resource, namespace)
        except ApiError as error:
            if error.is_missing:
                return []
            if not error.is_forbidden:
                raise
            self._unread.append(unlisted(resource, f"may not be listed: {error.message}"))
            return []
        if namespace is not None:
            reason = f"only those of the namespace {namespace} were read"
            self._unread.append(unlisted(resource, reason, elsewhere=namespace))
        return objects

    async def _list_named(self, resource: Resource, naming: Naming) -> list[JsonObject]:
        objects: dict[tuple[str, str], JsonObject] = {}
        for need in naming.of(resource.kind):
            try:
                listed, _ = await self._connection.list(
                    resource, need.namespace, label_selector=need.labels, field_selector=need.fields
                )
            except ApiError as error:
                if not error.is_forbidden:
                    raise
                self._unread.append(unlisted(resource, f"{need} may not be read: {error.message}"))
                continue
            objects |= {(obj["metadata"]["namespace"], obj["metadata"]["name"]): obj for obj in listed}
        return list(objects.values())
