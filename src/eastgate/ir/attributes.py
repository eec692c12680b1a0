"""What a policy may look at: the attributes of a request.

An attribute is *known* (it has a value), *absent* (known not to be there: a client without an identity has
no identity) or *unknown* (the enforcement point cannot see it, or the question leaves it out). Absent is
`None`: it equals nothing. Unknown is `UNKNOWN`: the verdict is allow only if every completion allows.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from threading import RLock
from typing import Final, NoReturn
from weakref import WeakValueDictionary


class Unknown(enum.Enum):
    """The type of `UNKNOWN`, so that a checker can tell it from a value."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN


class Attribute:
    """One thing that a request has. `needs_http`: it exists only where an enforcement point reads HTTP.

    Requests are read by attribute, several times for each decision. So there is one object for each attribute, and
    identity is equality: a look-up calls no Python. It is forgotten with its last use, since requests name headers.
    """

    __slots__ = ("__weakref__", "key", "name", "needs_http")
    __match_args__ = ("name", "key", "needs_http")

    name: str
    key: str
    needs_http: bool

    def __new__(cls, name: str, key: str = "", needs_http: bool = False) -> Attribute:
        """Return the attribute of that name and key, which is made where there is none."""
        parts = (name, key, needs_http)
        attribute = _ATTRIBUTES.get(parts)
        if attribute is None:
            attribute = object.__new__(cls)
            for slot, part in zip(cls.__match_args__, parts, strict=True):
                object.__setattr__(attribute, slot, part)
            with _LOCK:  # two threads must not get two
                attribute = _ATTRIBUTES.setdefault(parts, attribute)
        return attribute

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[type[Attribute], tuple[str, str, bool]]:
        return Attribute, self._parts

    def __lt__(self, other: Attribute) -> bool:
        return self._parts < other._parts

    def __repr__(self) -> str:
        return f"Attribute(name={self.name!r}, key={self.key!r}, needs_http={self.needs_http!r})"

    @property
    def _parts(self) -> tuple[str, str, bool]:
        return self.name, self.key, self.needs_http

    @property
    def is_header(self) -> bool:
        """Return whether it is a request header."""
        return self.name == "header"

    @property
    def is_repeatable(self) -> bool:
        """Return whether a request may have it several times, each time with a value of its own."""
        return self.name in _REPEATABLE

    @property
    def is_field(self) -> bool:
        """Return whether it is a header or a query parameter: who knows some of a request knows all of them."""
        return self.name in _FIELDS

    def __str__(self) -> str:
        return f"{self.name} {self.key}" if self.key and self.name != "path" else self.name


_FIELDS = frozenset({"header", "query parameter"})
_REPEATABLE = _FIELDS | {"claim", "name of the port"}
_ATTRIBUTES: WeakValueDictionary[tuple[str, str, bool], Attribute] = WeakValueDictionary()
_LOCK = RLock()


IDENTITY: Final = Attribute("identity")  # the SPIFFE ID of the peer
# The peer as Linkerd names it: a DNS name, or a SPIFFE ID. It does not follow from the identity: a certificate with the
# SPIFFE ID of an account is none with its DNS name, and one with a DNS name alone gives no identity.
MESH_NAME: Final = Attribute("mesh name")
SOURCE_WORKLOAD: Final = Attribute("source workload")  # "namespace/name" of the calling pod
ADDRESS: Final = Attribute("source address")  # of the direct peer
PORT: Final = Attribute("port")  # of the destination workload
SERVICE: Final = Attribute("service")  # "namespace/name" that the traffic is addressed to; absent: the pod itself
BACKEND: Final = Attribute("backend")  # "namespace/name" that a gateway routes to; absent: it answers itself
AUTH_CONFIG: Final = Attribute("AuthConfig")  # "namespace/name" that alone is asked about; absent: whichever it is
SNI: Final = Attribute("SNI")
HOST: Final = Attribute("host", needs_http=True)
METHOD: Final = Attribute("method", needs_http=True)
PATH: Final = Attribute("path", needs_http=True)
SENT_PATH: Final = Attribute("path", "as sent", needs_http=True)  # as a proxy sees it that normalises nothing
BAD_HOST: Final = Attribute("bad host", needs_http=True)  # what stands in the place of a host, and is none
HANDED_PATH: Final = Attribute("path as handed on", needs_http=True)  # where its spelling is not the canonical one
REFUSED_PATH: Final = Attribute("path that is refused", needs_http=True)  # one that no proxy takes; else absent
# What expressions see, which is what a proxy hands on
AUTHORITY: Final = Attribute("host with its port", needs_http=True)
TARGET: Final = Attribute("path with its query", needs_http=True)
URL_PATH: Final = Attribute("path without its query", needs_http=True)
HANDED_PATHS: Final = frozenset({TARGET, URL_PATH})
PATHS: Final = HANDED_PATHS | {PATH}
# What only some dialects look at. It is worked out where a layer asks for it, and never else: see `Derivation`.
APPLICATION: Final = Attribute("application protocol")  # "http", or "bytes" where nothing of HTTP is said
TRANSPORT: Final = Attribute("transport protocol")  # "TCP", "UDP" or "SCTP"
FORWARDED_ADDRESS: Final = Attribute("forwarded address")  # of the client, as proxies in front report it
TOKEN: Final = Attribute("token", needs_http=True)  # what became of it: see each dialect; absent: there is none
# The two ends as networks see them. Labels are texts of `eastgate.ir.labels.labels_text`; an end that is no pod, or a
# pod in its node's network, has none.
PACKET_SOURCE: Final = Attribute("source address of packets")  # of an account's pods too, unlike that of the peer
SOURCE_NAMESPACE: Final = Attribute("labels of the source's namespace")
SOURCE_LABELS: Final = Attribute("labels of the source")
DESTINATION_NAMESPACE: Final = Attribute("labels of the destination's namespace")
DESTINATION_LABELS: Final = Attribute("labels of the destination")
DESTINATION_NODE: Final = Attribute("labels of the destination's node")  # where the node itself is the destination
DESTINATION_ADDRESS: Final = Attribute("destination address")
DESTINATION_DOMAIN: Final = Attribute("destination domain")  # a DNS name that was resolved to the address
PORT_NAME: Final = Attribute("name of the port")  # all names that the destination gives to it, for the transport
VICINITY: Final = Attribute("whether the pod calls itself")  # "itself"; "node": a pod and its own node
ADDRESSES: Final = frozenset({ADDRESS, FORWARDED_ADDRESS, PACKET_SOURCE, DESTINATION_ADDRESS})
"""Addresses that every request has, known or not."""
USUAL: Final[Mapping[Attribute, None]] = {VICINITY: None, REFUSED_PATH: None}
"""Attributes that usual requests lack: the caller is another workload, and proxies take the path. Tables for people are
about usual requests."""
TIME: Final = Attribute("time")  # of the request, as RFC 3339
MCP_METHOD: Final = Attribute("MCP method", needs_http=True)
MCP_TOOL: Final = Attribute("MCP tool", needs_http=True)


def header(name: str) -> Attribute:
    """Return a request header; names are compared without letter case."""
    return Attribute("header", name.lower(), needs_http=True)


def query(name: str) -> Attribute:
    """Return a query parameter."""
    return Attribute("query parameter", name, needs_http=True)


def claim(path: str) -> Attribute:
    """Return a claim of the verified token."""
    return Attribute("claim", path, needs_http=True)


def normalized_path(normalization: str) -> Attribute:
    """Return the path as a proxy compares it that normalizes so."""
    return Attribute("path", f"normalized: {normalization}", needs_http=True)


def normalized_target(normalization: str) -> Attribute:
    """Return the attribute of the path with its query, as a proxy with this normalization compares it."""
    return Attribute("path", f"with its query, normalized: {normalization}", needs_http=True)
