"""What exists of one kind, and every change of it: a list, and a watch from there on, for as long as it is wanted.

A watch goes on where the last one ended. Where the server no longer keeps that version, or its answer leaves any doubt,
everything is listed again, and what is not in the list is gone: no change is lost, though several may arrive as one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, TypeAlias

from eastgate.basics.records import dataclass
from eastgate.basics.tasks import RetryDelay
from eastgate.reading.kubernetes.connection import Connection, JsonObject
from eastgate.reading.kubernetes.discovery import Resource
from eastgate.reading.kubernetes.errors import ApiError, SilenceError, UnreachableError, error_of

_WATCH: Final = 300.0  # seconds, and up to twice that: watches of many kinds must not all end together
_SILENCE: Final = 90.0  # seconds without an event or a bookmark, which come every minute or so


@dataclass(frozen=True, slots=True)
class Replaced:
    """Everything that exists of a kind. What was there and is not among it is gone."""

    objects: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """An object that is new or was changed."""

    object: JsonObject


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object that is gone, as it last was."""

    object: JsonObject


@dataclass(frozen=True, slots=True)
class Synced:
    """Nothing changed up to now: a bookmark."""


ObjectEvent: TypeAlias = Replaced | Put | Deleted | Synced


class Reflector:
    """Follows the objects of one kind, in one namespace or all. `on_trouble` is told why it waits before it goes on.

    A kind that is not served any more, or may not be read, ends it: `follow` raises ApiError.
    """

    def __init__(
        self,
        connection: Connection,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        on_trouble: Callable[[Resource, Exception], None] = lambda _resource, _error: None,
    ) -> None:
        self.resource = resource
        self._connection = connection
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._on_trouble = on_trouble
        self._backoff = RetryDelay()
        self._version: str | None = None
        self.seen_at: float | None = None
        """When the server last said something, by the monotonic clock: how far behind this may be."""

    async def follow(self) -> AsyncGenerator[ObjectEvent, None]:
        """Yield everything that exists, and then each change. Raises ApiError where the kind cannot be read at all."""
        while True:
            try:
                if self._version is None:
                    yield await self._list()
                async with aclosing(self._watch()) as events:
                    async for event in events:
                        yield event
                        del event  # it may be large, and the next one come late
            except ApiError as error:
                if error.is_missing or error.is_forbidden:
                    raise
                if error.is_expired:
                    self._version = None
                    continue
                await self._wait(error, error.retry_after)
            except SilenceError:
                continue  # a new connection shows whether anybody is there
            except UnreachableError as error:
                await self._wait(error)

    async def _wait(self, error: Exception, asked: float | None = None) -> None:
        self._on_trouble(self.resource, error)
        await asyncio.sleep(self._backoff.next(asked))

    async def _list(self) -> Replaced:
        objects, version = await self._connection.list(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        self._version = version
        self.seen_at = time.monotonic()
        return Replaced(tuple(objects))

    async def _watch(self) -> AsyncGenerator[ObjectEvent, None]:
        seconds = _WATCH * random.uniform(1.0, 2.0)  # noqa: S311 - no secret
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version or "",
            "timeoutSeconds": str(int(seconds)),
            "labelSelector": self._label_selector or "",
            "fieldSelector": self._field_selector or "",
        }
        params = {name: value for name, value in params.items() if value}
        async with self._connection.watch(self.resource.path(self._namespace), params, _SILENCE) as events:
            async for event in events:
                self.seen_at = time.monotonic()
                yield self._take(event)
                del event
                self._backoff.reset()

    def _take(self, event: JsonObject) -> ObjectEvent:
        """Return what an event says, and note where to go on. Raises ApiError for one that is an error."""
        kind, obj = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise error_of(obj)
        version = (obj.get("metadata") or {}).get("resourceVersion")
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") or not isinstance(version, str) or not version:
            raise ApiError(410, "Expired", f"an event of a watch that nobody understands: {kind}")
        self._version = version
        match kind:
            case "BOOKMARK":
                return Synced()
            case "DELETED":
                return Deleted(obj)
            case _:
                return Put(obj)
