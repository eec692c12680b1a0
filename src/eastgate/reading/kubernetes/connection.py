"""Requests to the API server, with plain data as input and output."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from eastgate.reading.kubernetes.depth import cut_depth
from eastgate.reading.kubernetes.discovery import Discovery, Resource
from eastgate.reading.kubernetes.errors import ApiError, SilenceError, UnreachableError, error_of
from eastgate.reading.kubernetes.kubeconfig import load_config

if TYPE_CHECKING:
    import httpx2

JsonObject: TypeAlias = dict[str, Any]
_Objects: TypeAlias = list[JsonObject]
_Names: TypeAlias = list[str]  # the name `list` is a method of a connection

MANAGER: Final = "eastgate"
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_JSON: Final = "application/json"
_NAMES: Final = f"{_JSON};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_APPLY: Final = "application/apply-patch+yaml"
_PAGE_OBJECTS: Final = 500
_TIMEOUT_SECONDS: Final = 30.0  # for every answer except a watch
_MAX_RELISTS: Final = 3


def connect(
    kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None, *, agent: str = "eastgate"
) -> Connection:
    """Return a connection to the cluster of a context, an asynchronous context manager. Raises KubeconfigError."""
    import httpx2
    from lightkube.config.client_adapter import ConnectionParams

    config = load_config(kubeconfig, context)
    if config.user is None:
        from lightkube.config.models import User

        config = config._replace(user=User())
    params = ConnectionParams(timeout=httpx2.Timeout(_TIMEOUT_SECONDS)).httpx_params(config)
    # Each watch has a connection of its own.
    client = httpx2.AsyncClient(**params, headers={"User-Agent": agent}, limits=httpx2.Limits(max_connections=None))
    return Connection(client, config.namespace, config.cluster.server)


class Connection:
    """A connection to one API server, as one user. `namespace` is the namespace of the context."""

    def __init__(self, client: httpx2.AsyncClient, namespace: str = "default", server: str = "") -> None:
        self._client = client
        self.namespace = namespace
        self.server = server

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    # Reading

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> JsonObject:
        """Return one object. Raises ApiError, with `is_missing` if it does not exist."""
        return await self.request("GET", resource.path(namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[_Objects, str]:
        """Return all objects of a kind, and the resource version of the list. Pages are requested one by one.

        If the list expires between two pages, it is requested again.
        """
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        chosen = {name: value for name, value in selectors.items() if value}
        for last in (*[False] * (_MAX_RELISTS - 1), True):
            try:
                return await self._list_pages(resource.path(namespace), chosen, resource)
            except ApiError as error:
                if last or not error.is_expired:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _list_pages(
        self, path: str, selectors: Mapping[str, str], resource: Resource, *, accept: str = _JSON
    ) -> tuple[_Objects, str]:
        items: _Objects = []
        continued = ""
        while True:
            more = {"continue": continued} if continued else {}
            page = await self.request(
                "GET", path, params={"limit": str(_PAGE_OBJECTS), **selectors, **more}, accept=accept
            )
            if "items" not in page:
                raise UnreachableError(f"the answer for {resource} is not a list of objects")
            for item in page["items"] or ():
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
                items.append(item)
            metadata = page.get("metadata") or {}
            continued = metadata.get("continue") or ""
            if not continued:
                return items, str(metadata.get("resourceVersion") or "")

    @asynccontextmanager
    async def watch(
        self, path: str, params: Mapping[str, str], silence: float
    ) -> AsyncIterator[AsyncIterator[JsonObject]]:
        """Watch a collection: yield an iterator of events. It ends when the server ends the watch.

        Raises ApiError for a refusal, UnreachableError for a broken connection, SilenceError if no event comes for too
        long.
        """
        import httpx2

        timeout = httpx2.Timeout(_TIMEOUT_SECONDS, read=silence)
        try:
            async with self._client.stream(
                "GET", path, params=dict(params), timeout=timeout, extensions=_closing_unfinished()
            ) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _refusal(response)
                yield _events(response)
        except httpx2.ReadTimeout as error:
            raise SilenceError(_why(error)) from error
        except (httpx2.HTTPError, OSError) as error:
            raise UnreachableError(_why(error)) from error

    async def discover(self) -> Discovery:
        """Return the kinds that the server serves, and the names of its CRDs if they may be listed."""
        defined = await self._definitions()
        lists = [await self.request("GET", path, accept=Discovery.ACCEPT) for path in ("/api", "/apis")]
        return Discovery.of(lists, defined)

    async def _definitions(self) -> _Names:
        """Return the names of all CRDs; none if they may not be listed."""
        try:
            listed, _ = await self._list_pages(DEFINITIONS.path(), {}, DEFINITIONS, accept=_NAMES)
        except ApiError as error:
            if error.is_forbidden or error.is_missing:
                return []
            raise
        return [definition["metadata"]["name"] for definition in listed]

    # Writing

    async def apply(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        manager: str = MANAGER,
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> JsonObject:
        """Apply an object on the server: the manager owns exactly these fields."""
        metadata = obj["metadata"]
        params = {"fieldManager": manager, "force": str(force).lower(), **_dry(dry_run)}
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        return await self.request("PATCH", path, obj, params=params, content_type=_APPLY)

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        change: object,
        *,
        kind: str = "merge",
        subresource: str | None = None,
        manager: str = MANAGER,
    ) -> JsonObject:
        """Patch an object; `kind` is `merge`, `json` or `strategic-merge`."""
        path = resource.path(namespace, name, subresource)
        content_type = f"application/{kind}-patch+json"
        return await self.request("PATCH", path, change, params={"fieldManager": manager}, content_type=content_type)

    async def create(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        manager: str = MANAGER,
        dry_run: bool = False,
    ) -> JsonObject:
        """Create an object, or a `subresource` of the named object."""
        home = namespace or (obj.get("metadata") or {}).get("namespace")
        params = {"fieldManager": manager, **_dry(dry_run)}
        return await self.request("POST", resource.path(home, name, subresource), obj, params=params)

    async def replace(
        self, resource: Resource, obj: Mapping[str, Any], *, subresource: str | None = None, manager: str = MANAGER
    ) -> JsonObject:
        """Replace an object. If it has a `resourceVersion`, replace only that version."""
        metadata = obj["metadata"]
        path = resource.path(metadata.get("namespace"), metadata["name"], subresource)
        return await self.request("PUT", path, obj, params={"fieldManager": manager})

    async def delete(
        self, resource: Resource, name: str, namespace: str | None = None, *, uid: str | None = None
    ) -> None:
        """Delete an object; with a `uid`, only that object. Raises ApiError, with `is_missing` if it does not exist."""
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        await self.request("DELETE", resource.path(namespace, name), options)

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> JsonObject:
        """Send one request and return the answer. Raises ApiError for a refusal, UnreachableError without an answer."""
        import httpx2

        headers = {"Accept": accept}
        content = None
        if body is not None:
            headers["Content-Type"] = content_type
            content = json.dumps(body).encode()
        try:
            response = await self._client.request(
                method,
                path,
                params=dict(params or {}),
                headers=headers,
                content=content,
                extensions=_closing_unfinished(),
            )
        except (httpx2.HTTPError, OSError) as error:
            raise UnreachableError(_why(error)) from error
        if response.status_code >= 300:
            raise _refusal(response)
        return _decode(response.content)


def _closing_unfinished() -> dict[str, Any]:
    """Return a request extension that closes the socket if the request is cancelled during the TLS handshake.

    httpcore closes it only for errors, and a cancellation is not an error.
    """
    connected: Any = None

    async def trace(event: str, info: Mapping[str, Any]) -> None:
        nonlocal connected
        if event == "connection.connect_tcp.complete":
            connected = info["return_value"]
        elif event == "connection.start_tls.failed" and connected is not None:
            await connected.aclose()

    return {"trace": trace}


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _decode(content: bytes) -> JsonObject:
    import msgspec

    try:
        try:
            decoded: JsonObject = msgspec.json.decode(content, type=dict[str, Any])
        except RecursionError:  # one unreadable object must not prevent the others from being read
            decoded = msgspec.json.decode(cut_depth(content), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreachableError(f"the answer is not a JSON object: {error}") from error
    return decoded


def _refusal(response: httpx2.Response) -> ApiError:
    try:
        status = _decode(response.content)
    except UnreachableError:
        status = {"message": response.text[:500]}
    error = error_of(status if status.get("kind", "Status") == "Status" else {}, response.status_code)
    seconds = response.headers.get("Retry-After", "")
    if seconds.isdigit():
        error.details.setdefault("retryAfterSeconds", int(seconds))
    return error


async def _events(response: httpx2.Response) -> AsyncIterator[JsonObject]:
    """Yield the events of a watch. Each line is one JSON object."""
    rest = b""
    async for data in response.aiter_bytes():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                yield _decode(line)
    if rest.strip():
        yield _decode(rest)
