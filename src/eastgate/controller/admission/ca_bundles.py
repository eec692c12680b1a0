"""The `caBundle` of webhook configurations and definitions: what an API server knows our certificate by.

One replica writes it, and puts it back where somebody has changed it.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from eastgate.controller.admission.configuration import MUTATING, VALIDATING, converted_definitions
from eastgate.reading.kubernetes import ApiError, Connection, JsonObject, Resource

_LOG = logging.getLogger(__name__)
_UNWRITTEN = "a caBundle that could not be written"
_TRIES = 5
_ADMISSION = "admissionregistration.k8s.io"
_VALIDATING = Resource(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
_MUTATING = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


def with_ca_bundle(manifest: Mapping[str, Any], certificates: str) -> JsonObject | None:
    """Return a configuration or a definition that trusts these certificates (PEM); None where it does already."""
    changed: JsonObject = deepcopy(dict(manifest))
    for client in _clients(changed):
        client["caBundle"] = b64encode(certificates.encode()).decode()
    return changed if changed != manifest else None


def _clients(manifest: JsonObject) -> list[JsonObject]:
    entries = list(manifest.get("webhooks") or ())
    conversion = (manifest.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") == "Webhook":
        entries.append(conversion.setdefault("webhook", {}))
    return [entry.setdefault("clientConfig", {}) for entry in entries]


class CaBundleKeeper:
    """Keeps the `caBundle` of our configurations and definitions at `certificates()`. For the leader alone."""

    def __init__(
        self, connection: Connection, certificates: Callable[[], str], *, definitions: Sequence[str] | None = None
    ) -> None:
        self._connection = connection
        self._certificates = certificates
        names = converted_definitions() if definitions is None else definitions
        self._objects = [(_VALIDATING, VALIDATING), (_MUTATING, MUTATING), *((_DEFINITIONS, name) for name in names)]
        self._nudge = asyncio.Event()

    def look(self) -> None:
        """Look at once, since the certificates have changed."""
        self._nudge.set()

    async def run(self, seconds: float = 10.0) -> None:
        """Look again and again, after so many seconds or as soon as it is asked to, until it is cancelled."""
        while True:
            self._nudge.clear()
            await self.write()
            try:
                async with asyncio.timeout(seconds):
                    await self._nudge.wait()
            except TimeoutError:
                continue

    async def write(self) -> int:
        """Write what differs; return how many objects that were. One that cannot be written keeps none from it.

        Raises UnreachableError.
        """
        written = 0
        for resource, name in self._objects:
            fields = {"kind": resource.kind, "object": name}
            try:
                written += await self._write(resource, name)
                over = {**fields, "over": _UNWRITTEN}
                _LOG.info("the caBundle of %s %s can be written again", resource.kind, name, extra=over)
            except ApiError as error:
                if not error.is_missing:
                    trouble = {**fields, "trouble": _UNWRITTEN}
                    message = "the caBundle of %s %s could not be written: %s"
                    _LOG.warning(message, resource.kind, name, error, extra=trouble)
        return written

    async def _write(self, resource: Resource, name: str) -> bool:
        for attempt in range(_TRIES):
            changed = with_ca_bundle(await self._connection.get(resource, name), self._certificates())
            if changed is None:
                return False
            try:
                await self._connection.replace(resource, changed)
            except ApiError as error:
                if not error.is_conflict or attempt == _TRIES - 1:
                    raise
            else:
                fields = {"kind": resource.kind, "object": name}
                _LOG.info("the caBundle of %s %s was written", resource.kind, name, extra=fields)
                return True
        return False
