"""Secrets: what they hold is compared with credentials, and never shown to anybody."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from eastgate.places import Span
from eastgate.world import codes
from eastgate.world.fields import Section
from eastgate.world.objects import ObjectId

__all__ = ["Secret", "read_secret"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A Secret. No text that is made of it has its data, nor its annotations, where kubectl keeps a copy."""

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    data: Mapping[str, bytes] = field(default_factory=dict, hash=False, repr=False)
    type: str = "Opaque"
    span: Span | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Its name among the world's Secrets: `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def id(self) -> ObjectId:
        """Which object of the API this is."""
        return ObjectId("", "Secret", self.namespace, self.name)


def read_secret(root: Section, namespace: str, name: str, span: Span | None) -> Secret:
    """A Secret; `stringData` goes before `data`, as it does to the API server."""
    metadata = root.section("metadata")
    return Secret(
        namespace=namespace,
        name=name,
        labels=metadata.strings("labels"),
        annotations=metadata.strings("annotations"),
        data={**dict(_data(root)), **dict(_string_data(root))},
        type=root.text("type") or "Opaque",
        span=span,
    )


def _data(root: Section) -> Iterator[tuple[str, bytes]]:
    for key, value in root.section("data").data.items():
        decoded = _decoded(value)
        if decoded is not None:
            yield key, decoded
        else:  # pointing at the name: the value is not for showing
            way_out = "write it in base64, or write it as it is under stringData"
            root.complain(codes.BAD_SECRET, f"`{key}` of the Secret is not base64", "metadata", "name", help=way_out)


def _decoded(value: object) -> bytes | None:
    try:
        return base64.b64decode("".join(value.split()), validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def _string_data(root: Section) -> Iterator[tuple[str, bytes]]:
    for key, value in root.section("stringData").data.items():
        if isinstance(value, str):
            yield key, value.encode("utf-8", "surrogatepass")
        else:
            message = f"`{key}` of the Secret is not a string"
            root.complain(codes.BAD_SECRET, message, "metadata", "name", help="quote it")
