"""The two ends of a question: the source and the destination.

The text of an end is `kind:namespace/name`, as a command line, a decision table and `Question.of` write it:
`str(ServiceAccount("shop", "web")) == "sa:shop/web"`. `parse_source` and `parse_destination` read such texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.cluster.points import Point
from eastgate.cluster.question_errors import BAD_DESTINATION, BAD_SOURCE, QuestionError
from eastgate.ir import Known, Predicate
from eastgate.ir.attributes import Attribute

DEFAULT_NAMESPACE = "default"
_MAX_TEXTS = 4096  # cached texts


class _End(tuple[str, ...]):
    """An end, as a tuple of texts that differs from that of every other end.

    Tuples are hashed and compared in C, and every question is looked up by its ends.
    """

    __slots__ = ()

    def __getnewargs__(self) -> tuple[str, ...]:  # without the first word, which is the kind
        return tuple(self[1:])


class _Named(_End):
    """An end that has a namespace and a name."""

    __slots__ = ()
    __match_args__ = ("namespace", "name")
    kind: ClassVar[str]

    if TYPE_CHECKING:  # mypy does not understand a property of a C function
        namespace: str
        name: str
    else:
        namespace = property(itemgetter(1))
        name = property(itemgetter(2))

    def __new__(cls, namespace: str, name: str) -> Self:
        return tuple.__new__(cls, (cls.kind, namespace, name))

    @classmethod
    def of_key(cls, key: str) -> Self:
        """Return the end of `namespace/name`."""
        namespace, _, name = key.partition("/")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(namespace={self.namespace!r}, name={self.name!r})"

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class _Valued(_End):
    """An end with a single value."""

    __slots__ = ()
    __match_args__ = ("value",)
    prefix: ClassVar[str] = ""

    if TYPE_CHECKING:
        value: str
    else:
        value = property(itemgetter(1))

    def __new__(cls, value: str) -> Self:
        return tuple.__new__(cls, (cls.prefix, value))

    def __str__(self) -> str:
        return f"{self.prefix}{self.value}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r})"


class ServiceAccount(_Named):
    """Callers with the identity of a service account of the trust domain."""

    __slots__ = ()
    kind = "sa"


class Pod(_Named):
    """A pod, or all pods of the controller of that name, or the ExternalWorkload of that name."""

    __slots__ = ()
    kind = "pod"
    owner: ClassVar[str | None] = None
    """The kind of the controller of the pods; None for any kind."""


class DeploymentPods(Pod):
    """All pods of a Deployment."""

    __slots__ = ()
    kind = "deployment"
    owner = "Deployment"


class StatefulSetPods(Pod):
    """All pods of a StatefulSet."""

    __slots__ = ()
    kind = "statefulset"
    owner = "StatefulSet"


class DaemonSetPods(Pod):
    """All pods of a DaemonSet."""

    __slots__ = ()
    kind = "daemonset"
    owner = "DaemonSet"


class Service(_Named):
    """All pods of a Service, at the ports that the Service's ports lead to."""

    __slots__ = ()
    kind = "service"


class Gateway(_Named):
    """A Gateway as a destination: all destinations behind it."""

    __slots__ = ()
    kind = "gateway"


class Route(_Named):
    """An HTTPRoute as a destination: all destinations behind it."""

    __slots__ = ()
    kind = "route"


class Backend(_Named):
    """A Backend, past every Gateway."""

    __slots__ = ()
    kind = "backend"


class AuthConfig(_Named):
    """A policy for hosts, for requests to the host of the question, or to the policy's only host."""

    __slots__ = ()
    kind = "authconfig"


class Host(_Valued):
    """A host: the policy for this host decides. Without such a policy, a host outside of the cluster."""

    __slots__ = ()
    prefix = "host:"


class SpiffeId(_Valued):
    """Callers with a SPIFFE ID, `spiffe://trust-domain/path`."""

    __slots__ = ()


class CertificateName(_Valued):
    """Callers whose certificate has a DNS name and no SPIFFE ID."""

    __slots__ = ()
    prefix = "id:"


class Address(_Valued):
    """Callers at an IP address, without a certificate; as a destination, the workload or host at the address."""

    __slots__ = ()
    prefix = "ip:"


class _Unnamed(_End):
    """A caller without a name."""

    __slots__ = ()
    word: ClassVar[str]

    def __new__(cls) -> Self:
        return tuple.__new__(cls, (cls.word,))

    def __str__(self) -> str:
        return self.word

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Anonymous(_Unnamed):
    """A caller without a certificate, at an unknown address."""

    __slots__ = ()
    word = "anonymous"


class UnknownCaller(_Unnamed):
    """A caller with no known attribute, not even its certificate. ALLOW needs every caller to be allowed."""

    __slots__ = ()
    word = "unknown"


ANONYMOUS = Anonymous()
UNKNOWN_CALLER = UnknownCaller()

Values: TypeAlias = Mapping[Attribute, Known]


@dataclass(frozen=True, slots=True, eq=False)
class EntryPoint:
    """Points where requests arrive, and the attributes that follow from arriving there.

    Every other destination leads to some entry points. A proxy that knows where its request goes names one itself.

    - `hides_http`: nothing on the way sees HTTP, even if a question has HTTP attributes.
    - `onward`: the Service that a gateway on the way calls, and the port there.
    - `condition` returns the condition on requests that arrive here, which is part of their known attributes.
    - `guard` returns the same condition, for reports about the requests that arrive here.
    """

    where: str
    points: tuple[Point, ...]
    values: Values
    hides_http: bool = False
    onward: tuple[str, int | None] | None = None
    condition: Callable[[], Predicate | None] | None = None
    guard: Callable[[], Predicate | None] | None = None

    def __str__(self) -> str:
        return self.where

    @property
    def within(self) -> Predicate | None:
        """Return the condition on requests that arrive here; None if it is unknown."""
        return None if self.condition is None else self.condition()


Source: TypeAlias = ServiceAccount | Pod | SpiffeId | CertificateName | Address | Anonymous | UnknownCaller
Destination: TypeAlias = Pod | Service | Gateway | Route | Backend | AuthConfig | Host | Address | EntryPoint

_DESTINATIONS: dict[str, type[Pod | Service | Gateway | Route | Backend | AuthConfig]] = {
    end.kind: end
    for end in (Pod, DeploymentPods, StatefulSetPods, DaemonSetPods, Service, Gateway, Route, Backend, AuthConfig)
}
WORKLOADS: dict[str, type[Pod]] = {end.kind: end for end in (Pod, DeploymentPods, StatefulSetPods, DaemonSetPods)}
NAMESPACED = frozenset({ServiceAccount.kind, *_DESTINATIONS})
_ALIASES: dict[str, str] = {
    "svc": "service",
    "services": "service",
    "deploy": "deployment",
    "deployments": "deployment",
    "sts": "statefulset",
    "statefulsets": "statefulset",
    "ds": "daemonset",
    "daemonsets": "daemonset",
    "po": "pod",
    "pods": "pod",
    "serviceaccount": "sa",
    "serviceaccounts": "sa",
    "gtw": "gateway",
    "gateways": "gateway",
}
"""The names that kubectl accepts for a kind, and the name that questions use."""


def canonical(text: str) -> str:
    """Return `kind:rest` for kubectl's `kind/rest`, or for another name of the kind."""
    before_colon, colon, after = text.partition(":")
    if colon:
        return f"{_ALIASES[before_colon]}:{after}" if before_colon in _ALIASES else text
    kind, slash, rest = text.partition("/")
    kind = _ALIASES.get(kind, kind)
    return f"{kind}:{rest}" if slash and kind in NAMESPACED else text


@lru_cache(_MAX_TEXTS)
def parse_source(text: str, namespace: str = DEFAULT_NAMESPACE, *, is_given: bool = False) -> Source:
    """Parse a source. Raises QuestionError for any other text.

    `namespace` is that of an end without one. An account must name its own namespace, unless the user chose another
    default than `default`, or the namespace `is_given` with the question. A misspelt account would be valid too.
    """
    text = canonical(text)
    kind, _, rest = text.partition(":")
    match kind:
        case "anonymous" if text == kind:
            return ANONYMOUS
        case "unknown" if text == kind:
            return UNKNOWN_CALLER
        case "spiffe" if text.startswith("spiffe://"):
            return SpiffeId(text)
        case "id" if text != kind:
            return CertificateName(rest)
        case "ip" if text != kind:
            return Address(rest)
        case "sa" if text != kind:
            home = namespace if is_given or namespace != DEFAULT_NAMESPACE else ""
            return ServiceAccount(*_namespaced(text, BAD_SOURCE, home))
        case _ if kind in WORKLOADS and text != kind:
            return WORKLOADS[kind](*_namespaced(text, BAD_SOURCE, namespace))
    raise QuestionError(
        BAD_SOURCE,
        f"`{text}` is not a source",
        "write sa:<namespace>/<name>, pod:<namespace>/<name>, deployment:<namespace>/<name>, spiffe://.., id:<name>, "
        "ip:<address> or anonymous",
    )


def destination_of(kind: str, value: str) -> Destination:
    """Return the destination of a kind, by its key or its host."""
    return Host(value) if f"{kind}:" == Host.prefix else _DESTINATIONS[kind].of_key(value)


@lru_cache(_MAX_TEXTS)
def parse_destination(text: str, namespace: str = DEFAULT_NAMESPACE) -> Destination:
    """Parse a destination; `namespace` is that of an end without one. Raises QuestionError for any other text."""
    text = canonical(text)
    if text.startswith(Address.prefix):
        return Address(text.removeprefix(Address.prefix))
    if text.startswith(Host.prefix) and text != Host.prefix:
        return Host(text.removeprefix(Host.prefix))
    end = _DESTINATIONS.get(text.partition(":")[0])
    if end is None:
        raise QuestionError(
            BAD_DESTINATION,
            f"`{text}` is not a destination",
            "write pod:, deployment:, service:, gateway:, route:, backend: or authconfig:, and <namespace>/<name>, "
            "host:<host>, or ip:<address>",
        )
    return end(*_namespaced(text, BAD_DESTINATION, namespace))


def _namespaced(text: str, code: Code, default: str) -> tuple[str, str]:
    """Split `kind:namespace/name`. The namespace is optional if there is a default."""
    kind, _, rest = text.partition(":")
    namespace, slash, name = rest.partition("/")
    if not slash and default:
        namespace, name = default, rest
    if not namespace or not name or "/" in name:
        way_out = f"write {kind}:<namespace>/<name>" + ("" if slash else ", or give the namespace with -n")
        raise QuestionError(code, f"`{text}` names no {kind}", way_out)
    return namespace, name
