"""The events between the control plane and its proxies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.envoy.server.status import ResourceRejection

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Connected:
    """A proxy has authenticated."""

    node: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A proxy's stream has ended."""

    node: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A proxy has answered for everything that it is to have."""

    node: str


@dataclass(frozen=True, slots=True)
class Acked:
    """A proxy has accepted a response. `versions` has None for removed resources."""

    node: str
    type_url: str
    versions: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class ResourceRejected:
    """A proxy has rejected a resource, sent by itself."""

    node: str
    type_url: str
    name: str
    rejection: ResourceRejection


ServerEvent: TypeAlias = Connected | Disconnected | Settled | Acked | ResourceRejected
OnServerEvent: TypeAlias = Callable[[ServerEvent], None]


class Events:
    """The listeners. One that fails does not keep the others from being called."""

    def __init__(self) -> None:
        self._listeners: list[OnServerEvent] = []

    def listen(self, listener: OnServerEvent) -> Callable[[], None]:
        """Call `listener` with every event, until the function that this returns is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                fields = {"event": type(event).__name__, "proxy": event.node}
                _LOG.exception("a listener failed on %s", type(event).__name__, extra=fields)
