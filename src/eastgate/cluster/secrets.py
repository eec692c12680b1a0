"""Secrets: their values are compared with credentials, and never shown."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, mapping
from eastgate.cluster.objects import Namespaced, ObjectId
from eastgate.cluster.shapes import STRINGS, TEXT, given, record
from eastgate.reading.manifests.placeholders import placeholder_in_wrong, variable_in
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Anything, MapOf


@dataclass(frozen=True, slots=True)
class Secret(Namespaced):
    """A Secret. No text about it has its data, nor its annotations, in which kubectl keeps a copy of the data."""

    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    data: Mapping[str, bytes] = field(default_factory=dict, hash=False, repr=False)
    type: str = "Opaque"
    span: Span | None = field(default=None, compare=False)

    @property
    def id(self) -> ObjectId:
        """Return the id of the object."""
        return ObjectId("", "Secret", self.namespace, self.name)


def _secret_problems(root: Data) -> Iterator[Problem]:
    """Yield the problems, by the names of entries: their values are not shown. An entry without a value is empty."""
    for key, value in mapping(root, "data").items():
        if value is not None and _decoded(value) is None and not _is_unknown(value):
            yield _problem(f"`{key}` of the Secret is not base64", _BASE64)
    for key, value in mapping(root, "stringData").items():
        if not isinstance(value, str | None):
            yield _problem(f"`{key}` of the Secret is not a string", "quote it")


def _is_unknown(value: object) -> bool:
    """Return whether a value that is not base64 is still encrypted, or to be filled in."""
    if isinstance(value, list) and len(value) == 1:  # [GOOGLE_CREDENTIALS]
        value = value[0]
    if not isinstance(value, str):
        return False
    return _is_open(value) or placeholder_in_wrong(value) is not None or _PLACEHOLDER.fullmatch(value) is not None


def _is_open(value: str) -> bool:
    """Return whether a value is encrypted by SOPS, or a variable."""
    return value.startswith(_ENCRYPTED) or variable_in(value) is not None


_ENCRYPTED = "ENC["
_PLACEHOLDER = regex(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\.{3}.*|.*\.{3}")  # the name of a value, and never base64
_BASE64 = "write it in base64, or write it as it is under stringData"


def _problem(message: str, way_out: str) -> Problem:
    return Problem(codes.BAD_SECRET, message, way_out, ("metadata", "name"))


_HELD: MapOf[None] = MapOf(Anything())
SECRET = record(
    {
        "metadata": record({"labels": STRINGS, "annotations": STRINGS}),
        "data": _HELD,
        "stringData": _HELD,
        "type": given(TEXT),
    },
    Demand(_secret_problems),
)


def make_secret(
    *, data: Mapping[str, object] | None = None, string_data: Mapping[str, object] | None = None, **fields: Any
) -> Secret:
    """Return a Secret; `stringData` replaces `data`, as at the API server.

    An entry with an empty or encrypted value, or one to be filled in, is left out: no credential is equal to it.
    """
    pairs = ((key, _decoded(value)) for key, value in (data or {}).items())
    decoded = {key: value for key, value in pairs if value is not None}
    written = {key: str(value) for key, value in (string_data or {}).items() if value is not None}
    encoded = {key: value.encode("utf-8", "surrogatepass") for key, value in written.items() if not _is_open(value)}
    return Secret(data=decoded | encoded, **fields)


def _decoded(value: object) -> bytes | None:
    try:
        return base64.b64decode("".join(value.split()), validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None
