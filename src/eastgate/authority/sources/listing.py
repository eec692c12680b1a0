"""One reading of a cluster: its current objects, as manifests. `--cluster` gives it to offline commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor

from eastgate.authority.sources.codes import NO_CLUSTER, REFUSED_BY_CLUSTER
from eastgate.authority.sources.documents import document_of, relevant
from eastgate.authority.sources.needs import BY_NAME, NeedIndex, resembling_kinds, served_kinds, unlisted, watched_kinds
from eastgate.reading.kubernetes import (
    ApiError,
    Connection,
    JsonObject,
    KubeconfigError,
    Resource,
    UnreachableError,
    connect,
)
from eastgate.reading.manifests import Document, ReadResult
from eastgate.settings import Settings

_MAX_CONCURRENT_REQUESTS = 8  # requests


class ClusterPath:
    """A cluster in the place of files: all its current objects.

    If a kind may not be listed in all namespaces, Eastgate lists it in `namespace`, or in the namespace of the context.
    """

    __slots__ = ("context", "kubeconfig", "namespace")

    def __init__(
        self,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        namespace: str | None = None,
    ) -> None:
        self.kubeconfig = kubeconfig
        self.context = context
        self.namespace = namespace

    def __fspath__(self) -> str:
        return f"<cluster {self.context}>" if self.context else "<cluster>"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of a command that reads the same cluster."""
        given = {"--kubeconfig": self.kubeconfig, "--context": self.context, "-n": self.namespace}
        named = (word for option, value in given.items() if value is not None for word in (option, os.fspath(value)))
        return ("--cluster", *named)

    def read(self, settings: Settings, into: ReadResult, on_part: Callable[[int, int], None] | None) -> None:
        """Add the objects of the cluster to a reading, and report requests that fail."""
        try:
            into.documents += _run(self._read(settings, on_part))
        except (KubeconfigError, UnreachableError, ValueError) as error:
            help_ = "choose one with --kubeconfig and --context; `kubectl version` shows whether it answers"
            into.reporter.report(NO_CLUSTER, f"the cluster cannot be read: {error}", help=help_)
        except ApiError as error:
            into.reporter.report(REFUSED_BY_CLUSTER, f"the API server refuses: {error}")

    async def _read(self, settings: Settings, on_part: Callable[[int, int], None] | None) -> list[Document]:
        async with connect(self.kubeconfig, self.context) as connection:
            return await _Listing(connection, self.namespace or connection.namespace).read(settings, on_part)


def _run(reading: Coroutine[None, None, list[Document]]) -> list[Document]:
    """Wait for a reading, also in a thread with a running loop, such as a notebook's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(reading)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, reading).result()


class _Listing:
    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT_REQUESTS)
        self._unlisted: list[Document] = []

    async def read(self, settings: Settings, on_kind: Callable[[int, int], None] | None) -> list[Document]:
        discovery = await self._connection.discover()
        kinds = (*watched_kinds(), *resembling_kinds(discovery))
        served = served_kinds(discovery, kinds, unserved=discovery.unserved)
        self._unlisted += [unlisted(resource, f"cannot be listed: {why}") for resource, why in served.unknown.items()]
        resources = {(kind.group, kind.kind): resource for kind, resource in served.resources.items()}
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
        needs = NeedIndex(settings)
        for obj in objects:
            needs.put(obj)
        named = [resource for name, resource in resources.items() if name in BY_NAME]
        objects += [relevant(obj) for resource in named for obj in await self._list_named(resource, needs)]
        return [*(document_of(obj, settings.namespace) for obj in objects), *self._unlisted]

    async def _list(self, resource: Resource) -> list[JsonObject]:
        try:
            async with self._slots:
                objects, _ = await self._connection.list(resource)
        except ApiError as error:
            if error.is_forbidden:
                return await self._list_namespace(resource, error)
            self._leave_out(resource, error)  # also if it is missing: discovery has just found it
            return []
        return objects

    def _leave_out(self, resource: Resource, error: ApiError) -> None:
        verb = "may not" if error.is_forbidden else "cannot"
        self._unlisted.append(unlisted(resource, f"{verb} be listed: {error}"))

    async def _list_namespace(self, resource: Resource, refusal: ApiError) -> list[JsonObject]:
        """List a kind in one namespace, since it may not be listed in all."""
        try:
            async with self._slots:
                if resource.kind == "Namespace" and not resource.group:
                    objects = [await self._connection.get(resource, self._namespace)]
                elif resource.namespaced:
                    objects, _ = await self._connection.list(resource, self._namespace)
                else:
                    raise refusal
        except ApiError as error:
            self._leave_out(resource, refusal if error.is_missing else error)
            return []
        reason = f"only those of the namespace {self._namespace} may be listed"
        self._unlisted.append(unlisted(resource, reason, beyond=self._namespace))
        return objects

    async def _list_named(self, resource: Resource, needs: NeedIndex) -> list[JsonObject]:
        objects: dict[tuple[str, str], JsonObject] = {}
        for need in needs.of(resource.kind):
            try:
                listed, _ = await self._connection.list(
                    resource, need.namespace, label_selector=need.labels, field_selector=need.fields
                )
            except ApiError as error:
                self._unlisted.append(unlisted(resource, f"{need} cannot be read: {error}"))
                continue
            objects |= {(obj["metadata"]["namespace"], obj["metadata"]["name"]): obj for obj in listed}
        return list(objects.values())
