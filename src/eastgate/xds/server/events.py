"""What happens between the control plane and its proxies, for whoever wants to follow it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from eastgate.xds.server.status import Rejection

__all__ = ["Acked", "Connected", "Disconnected", "Event", "Events", "Listener", "Rejected"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Connected:
    """A proxy has proved who it is."""

    node: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A proxy's stream has ended."""

    node: str


@dataclass(frozen=True, slots=True)
class Acked:
    """A proxy has accepted a response. `versions` has None for what the proxy does not have any more."""

    node: str
    type_url: str
    versions: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Rejected:
    """A proxy has rejected a resource, and was found to reject it by itself."""

    node: str
    type_url: str
    name: str
    rejection: Rejection


Event: TypeAlias = Connected | Disconnected | Acked | Rejected
Listener: TypeAlias = Callable[[Event], None]


class Events:
    """Those who listen. One that fails keeps nobody else from hearing."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call this with every event, until the function that this returns is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, event: Event) -> None:
        """Tell everybody."""
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:
                _LOG.exception("a listener failed on %s", type(event).__name__)
