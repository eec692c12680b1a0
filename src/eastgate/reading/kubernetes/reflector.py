"""Follows the objects of one kind: a list, then watches from its version on, until it is stopped.

Each watch continues where the last one ended. If the server no longer has that version, or its answer is ambiguous, all
objects are listed again, and objects that are not in the list are gone. No change is lost, but several may arrive as
one.
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

_WATCH_SECONDS: Final = 300.0  # up to twice that, so that watches of many kinds do not all end together
_SILENCE_SECONDS: Final = 90.0  # without an event or a bookmark; bookmarks come about every minute


@dataclass(frozen=True, slots=True)
class Replaced:
    """All existing objects of a kind. Objects that are not in it are gone."""

    objects: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """A new or changed object."""

    object: JsonObject


@dataclass(frozen=True, slots=True)
class Deleted:
    """A deleted object in its last state."""

    object: JsonObject


@dataclass(frozen=True, slots=True)
class Synced:
    """A bookmark: there is no other change up to now."""


ObjectEvent: TypeAlias = Replaced | Put | Deleted | Synced


class Reflector:
    """Follows the objects of one kind, in one namespace or in all. `on_trouble` is called with the reason of each wait.

    If the kind is not served any more, or may not be read, `follow` raises ApiError.
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
        """The monotonic time of the last message of the server: the objects are at least as recent."""

    async def follow(self) -> AsyncGenerator[ObjectEvent, None]:
        """Yield all existing objects, and then each change. Raises ApiError if the kind cannot be read."""
        while True:
            try:
                if self._version is None:
                    yield await self._list()
                async with aclosing(self._watch()) as events:
                    async for event in events:
                        yield event
                        del event  # free its memory; the next event may come late
            except ApiError as error:
                if error.is_missing or error.is_forbidden:
                    raise
                if error.is_expired:
                    self._version = None
                    continue
                await self._wait(error, error.retry_after)
            except SilenceError:
                continue  # a new connection shows whether the server is alive
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
        seconds = _WATCH_SECONDS * random.uniform(1.0, 2.0)  # noqa: S311 - no secret
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version or "",
            "timeoutSeconds": str(int(seconds)),
            "labelSelector": self._label_selector or "",
            "fieldSelector": self._field_selector or "",
        }
        params = {name: value for name, value in params.items() if value}
        async with self._connection.watch(self.resource.path(self._namespace), params, _SILENCE_SECONDS) as events:
            async for event in events:
                self.seen_at = time.monotonic()
                yield self._take(event)
                del event
                self._backoff.reset()

    def _take(self, event: JsonObject) -> ObjectEvent:
        """Return the content of an event, and remember its version. Raises ApiError for an error event."""
        kind, obj = event.get("type"), event.get("object") or {}
        if kind == "ERROR":
            raise error_of(obj)
        version = (obj.get("metadata") or {}).get("resourceVersion")
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK") or not isinstance(version, str) or not version:
            raise ApiError(410, "Expired", f"an unknown kind of event in a watch: {kind}")
        self._version = version
        match kind:
            case "BOOKMARK":
                return Synced()
            case "DELETED":
                return Deleted(obj)
            case _:
                return Put(obj)
