"""The attributes of a request that a policy may look at.

An attribute is *known* (it has a value), *absent* or *unknown*. Absent means that the request certainly lacks it: a
client without an identity has no identity. Unknown means that the enforcement point cannot see it, or that the question
leaves it out. Absent is `None`, which equals nothing. Unknown is `UNKNOWN`: the verdict is allow only if every
completion allows.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import FrozenInstanceError
from threading import RLock
from typing import Final, NoReturn, TypeAlias
from urllib.parse import parse_qsl, unquote_plus
from weakref import WeakValueDictionary

# Headers and queries of a request, as policies compare them. Both may hold several values of one name.


BLANKS = " \t"  # around the value of a header, they are not a part of it
Headers: TypeAlias = Mapping[str, str | Sequence[str]]

# If `Connection` names one of these, proxies refuse the request or ignore the word. Proxies remove other headers.
_NOT_NAMED = frozenset({"close", "connection", "http2-settings", "keep-alive", "te", "upgrade"})
_NOT_NAMED |= {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"}


def steers_proxy(name: str) -> bool:
    """Return whether a header decides where or how a proxy sends a request on: no authorizer may set or remove it."""
    lowered = name.lower()
    return lowered in _OF_CONNECTION or lowered.startswith((":", "x-eastgate-", "x-envoy-"))


_OF_CONNECTION = frozenset(
    {"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"}
    | {"upgrade"}
)


def each_header(headers: Headers) -> Iterator[tuple[str, str]]:
    """Yield each header with each of its values, in order."""
    for name, value in headers.items():
        yield from ((name, text) for text in ([value] if isinstance(value, str) else value))


class HeaderValues(dict[str, tuple[str, ...]]):
    """Headers as policies compare them, in the form of `header_values`. They never change."""


def header_values(headers: Headers) -> HeaderValues:
    """Return all values of each header, by its name in lower case.

    A header that `Connection` names ends at the proxy: neither policies nor the application see it.
    """
    if isinstance(headers, HeaderValues):
        return headers
    by_name = HeaderValues()
    for spelled, given in headers.items():
        name = spelled.lower()
        values = (given.strip(BLANKS),) if isinstance(given, str) else tuple(value.strip(BLANKS) for value in given)
        if values:
            by_name[name] = (*by_name[name], *values) if name in by_name else values
    if "connection" not in by_name:
        return by_name
    hop_by_hop = {word.strip(BLANKS).lower() for value in by_name.get("connection", ()) for word in value.split(",")}
    hop_by_hop -= _NOT_NAMED
    return HeaderValues((name, values) for name, values in by_name.items() if name not in hop_by_hop)


def query_of(target: str) -> str:
    """Return the query after a path, with its question mark, or an empty text."""
    return "".join(target.partition("#")[0].partition("?")[1:])


def query_values(target: str) -> dict[str, tuple[str, ...]]:
    """Return all values of each parameter of the query after a path."""
    by_name: dict[str, tuple[str, ...]] = {}
    for name, value in parse_qsl(query_of(target)[1:], keep_blank_values=True):
        by_name[name] = (*by_name.get(name, ()), value)
    return by_name


def spellings_in_query(target: str, name: str) -> tuple[str, ...]:
    """Return all spellings of the name of a parameter that occur in the query of a path."""
    names = (part.partition("=")[0] for part in query_of(target)[1:].split("&"))
    return tuple(dict.fromkeys(spelled for spelled in names if unquote_plus(spelled) == name))


def cookies_without(cookies: str, names: Collection[str]) -> str:
    """Return the value of a Cookie header without the cookies of these names."""
    parts = (part.strip(BLANKS) for part in cookies.split(";"))
    return "; ".join(part for part in parts if part and part.partition("=")[0] not in names)


class Unknown(enum.Enum):
    """The type of `UNKNOWN`, so that a type checker can tell it from a value."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN


class AttributeKind(enum.StrEnum):
    """The kinds of attributes. The values are for output, and also sort attributes.

    Most kinds have one attribute. Headers, claims and similar kinds have one for each key.
    """

    IDENTITY = "identity"
    MESH_NAME = "mesh name"
    SOURCE_WORKLOAD = "source workload"
    SOURCE_ADDRESS = "source address"
    PORT = "port"
    SERVICE = "service"
    BACKEND = "backend"
    HOST_POLICY = "policy for the host"
    SNI = "SNI"
    HOST = "host"
    METHOD = "method"
    PATH = "path"
    BAD_HOST = "bad host"
    HANDED_PATH = "path as handed on"
    REFUSED_PATH = "path that is refused"
    AUTHORITY = "host with its port"
    TARGET = "path with its query"
    URL_PATH = "path without its query"
    APPLICATION = "application protocol"
    TRANSPORT = "transport protocol"
    FORWARDED_ADDRESS = "forwarded address"
    TOKEN = "token"  # noqa: S105 - not a password
    PACKET_SOURCE = "source address of packets"
    SOURCE_NAMESPACE = "labels of the source's namespace"
    SOURCE_LABELS = "labels of the source"
    DESTINATION_NAMESPACE = "labels of the destination's namespace"
    DESTINATION_LABELS = "labels of the destination"
    DESTINATION_NODE = "labels of the destination's node"
    DESTINATION_ADDRESS = "destination address"
    DESTINATION_DOMAIN = "destination domain"
    PORT_NAME = "name of the port"
    VICINITY = "whether the pod calls itself"
    TIME = "time"
    MCP_METHOD = "MCP method"
    MCP_TOOL = "MCP tool"
    HEADER = "header"
    QUERY = "query parameter"
    CLAIM = "claim"
    ANSWER = "answer"  # of an external authorizer
    METADATA = "metadata"  # that a filter of Envoy adds to a request
    DESTINATION = "destination"  # the backend that routing chooses
    MCP_MESSAGE = "MCP message"  # whether the message in a request was read
    VALID_TOKEN = "valid token"  # noqa: S105 - a token with an issuer and a subject; only for output
    ANYTHING = "anything"  # for a condition on no attribute


class Attribute:
    """One property of a request. `needs_http`: it exists only at enforcement points that read HTTP.

    Each decision looks up several attributes. So each attribute is one object, and equality is identity: a look-up
    calls no Python code. An attribute that is no longer used is freed, because requests can name any header.
    """

    __slots__ = ("__weakref__", "key", "kind", "needs_http")
    __match_args__ = ("kind", "key")

    kind: AttributeKind
    key: str
    needs_http: bool

    def __new__(cls, kind: AttributeKind, key: str = "") -> Attribute:
        """Return the attribute of this kind and key, and make it if it does not exist."""
        parts = (kind, key)
        attribute = _ATTRIBUTES.get(parts)
        if attribute is None:
            attribute = object.__new__(cls)
            object.__setattr__(attribute, "kind", kind)
            object.__setattr__(attribute, "key", key)
            object.__setattr__(attribute, "needs_http", kind in _OF_HTTP)
            with _LOCK:  # two threads must get the same object
                attribute = _ATTRIBUTES.setdefault(parts, attribute)
        return attribute

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[type[Attribute], tuple[AttributeKind, str]]:
        return Attribute, (self.kind, self.key)

    def __lt__(self, other: Attribute) -> bool:
        return (self.kind, self.key) < (other.kind, other.key)

    def __repr__(self) -> str:
        return f"Attribute({self.kind.value!r}, {self.key!r})"

    @property
    def is_header(self) -> bool:
        """Return whether the attribute is a request header."""
        return self.kind is AttributeKind.HEADER

    @property
    def is_repeatable(self) -> bool:
        """Return whether a request may have several values of the attribute."""
        return self.kind in _REPEATABLE

    @property
    def is_field(self) -> bool:
        """Return whether the attribute is a header or a query parameter. A request knows all of these, or none."""
        return self.kind in _FIELDS

    def __str__(self) -> str:
        return f"{self.kind} {self.key}" if self.key and self.kind is not AttributeKind.PATH else self.kind.value


_FIELDS = frozenset({AttributeKind.HEADER, AttributeKind.QUERY})
_REPEATABLE = _FIELDS | {AttributeKind.CLAIM, AttributeKind.PORT_NAME}
_OF_HTTP = frozenset(
    {
        AttributeKind.HOST,
        AttributeKind.METHOD,
        AttributeKind.PATH,
        AttributeKind.BAD_HOST,
        AttributeKind.HANDED_PATH,
        AttributeKind.REFUSED_PATH,
        AttributeKind.AUTHORITY,
        AttributeKind.TARGET,
        AttributeKind.URL_PATH,
        AttributeKind.TOKEN,
        AttributeKind.MCP_METHOD,
        AttributeKind.MCP_TOOL,
        AttributeKind.HEADER,
        AttributeKind.QUERY,
        AttributeKind.CLAIM,
        AttributeKind.MCP_MESSAGE,
        AttributeKind.VALID_TOKEN,
    }
)
_ATTRIBUTES: WeakValueDictionary[tuple[AttributeKind, str], Attribute] = WeakValueDictionary()
_LOCK = RLock()


IDENTITY: Final = Attribute(AttributeKind.IDENTITY)  # the SPIFFE ID of the peer
# The peer as Linkerd names it: a DNS name, or a SPIFFE ID. It does not follow from the identity: a certificate with the
# SPIFFE ID of an account lacks its DNS name, and a certificate with only a DNS name gives no identity.
MESH_NAME: Final = Attribute(AttributeKind.MESH_NAME)
SOURCE_WORKLOAD: Final = Attribute(AttributeKind.SOURCE_WORKLOAD)  # "namespace/name" of the calling pod
ADDRESS: Final = Attribute(AttributeKind.SOURCE_ADDRESS)  # of the direct peer
PORT: Final = Attribute(AttributeKind.PORT)  # of the destination workload
SERVICE: Final = Attribute(AttributeKind.SERVICE)  # "namespace/name" that the client addressed; absent: the pod
BACKEND: Final = Attribute(AttributeKind.BACKEND)  # "namespace/name" that a gateway routes to; absent: no backend
HOST_POLICY: Final = Attribute(AttributeKind.HOST_POLICY)  # "namespace/name" that the question names; absent: any
SNI: Final = Attribute(AttributeKind.SNI)
HOST: Final = Attribute(AttributeKind.HOST)
METHOD: Final = Attribute(AttributeKind.METHOD)
PATH: Final = Attribute(AttributeKind.PATH)
SENT_PATH: Final = Attribute(AttributeKind.PATH, "as sent")  # as seen by a proxy that normalises nothing
BAD_HOST: Final = Attribute(AttributeKind.BAD_HOST)  # the invalid text in the place of a host
HANDED_PATH: Final = Attribute(AttributeKind.HANDED_PATH)  # present if its spelling is not canonical
REFUSED_PATH: Final = Attribute(AttributeKind.REFUSED_PATH)  # present if every proxy refuses the path
# Attributes of expressions: the values that a proxy hands on
AUTHORITY: Final = Attribute(AttributeKind.AUTHORITY)
TARGET: Final = Attribute(AttributeKind.TARGET)
URL_PATH: Final = Attribute(AttributeKind.URL_PATH)
HANDED_PATHS: Final = frozenset({TARGET, URL_PATH})
PATHS: Final = HANDED_PATHS | {PATH}
# Attributes that only some dialects read. A layer that needs one derives it: see `Derivation`.
APPLICATION: Final = Attribute(AttributeKind.APPLICATION)  # "http", or "bytes" for a question without HTTP attributes
TRANSPORT: Final = Attribute(AttributeKind.TRANSPORT)  # "TCP", "UDP" or "SCTP"
FORWARDED_ADDRESS: Final = Attribute(AttributeKind.FORWARDED_ADDRESS)  # of the client, as proxies in front report it
TOKEN: Final = Attribute(AttributeKind.TOKEN)  # the result of its validation, by dialect; absent: no token
# The two ends as networks see them. Labels are texts of `eastgate.ir.labels.labels_text`. An end that is no pod, or is
# in the network of its node, has no labels.
PACKET_SOURCE: Final = Attribute(AttributeKind.PACKET_SOURCE)  # known for pods of an account too, unlike the peer's
SOURCE_NAMESPACE: Final = Attribute(AttributeKind.SOURCE_NAMESPACE)
SOURCE_LABELS: Final = Attribute(AttributeKind.SOURCE_LABELS)
DESTINATION_NAMESPACE: Final = Attribute(AttributeKind.DESTINATION_NAMESPACE)
DESTINATION_LABELS: Final = Attribute(AttributeKind.DESTINATION_LABELS)
DESTINATION_NODE: Final = Attribute(AttributeKind.DESTINATION_NODE)  # present if the node itself is the destination
DESTINATION_ADDRESS: Final = Attribute(AttributeKind.DESTINATION_ADDRESS)
DESTINATION_DOMAIN: Final = Attribute(AttributeKind.DESTINATION_DOMAIN)  # a DNS name that was resolved to the address
PORT_NAME: Final = Attribute(AttributeKind.PORT_NAME)  # all names that the destination gives to the port
VICINITY: Final = Attribute(AttributeKind.VICINITY)  # "itself"; "node": a pod and its own node
ADDRESSES: Final = frozenset({ADDRESS, FORWARDED_ADDRESS, PACKET_SOURCE, DESTINATION_ADDRESS})
"""Addresses that every request has, known or not."""
USUAL: Final[Mapping[Attribute, None]] = {VICINITY: None, REFUSED_PATH: None}
"""Attributes that usual requests lack: the caller is another workload, and proxies accept the path. Tables in reports
are about usual requests."""
TIME: Final = Attribute(AttributeKind.TIME)  # of the request, as RFC 3339
MCP_METHOD: Final = Attribute(AttributeKind.MCP_METHOD)
MCP_TOOL: Final = Attribute(AttributeKind.MCP_TOOL)


def header(name: str) -> Attribute:
    """Return the attribute of a request header. Names are compared without letter case."""
    return Attribute(AttributeKind.HEADER, name.lower())


def query(name: str) -> Attribute:
    """Return the attribute of a query parameter."""
    return Attribute(AttributeKind.QUERY, name)


def claim(path: str) -> Attribute:
    """Return the attribute of a claim of the verified token."""
    return Attribute(AttributeKind.CLAIM, path)


def normalized_path(normalization: str) -> Attribute:
    """Return the attribute of the path, as a proxy with this normalization compares it."""
    return Attribute(AttributeKind.PATH, f"normalized: {normalization}")


def normalized_target(normalization: str) -> Attribute:
    """Return the attribute of the path with its query, as a proxy with this normalization compares it."""
    return Attribute(AttributeKind.PATH, f"with its query, normalized: {normalization}")
