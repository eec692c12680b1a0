"""The two ends of a question: who calls, and what is called.

Each is a text, `kind:namespace/name`, which is how a command line, a decision table and the Python API write it:
`ServiceAccount("shop", "web") == "sa:shop/web"`. `source_of` and `destination_of` read such texts.
"""

from __future__ import annotations

from typing import ClassVar, Self, TypeAlias

from eastgate.authority.questions.codes import BAD_DESTINATION, BAD_SOURCE, QuestionError
from eastgate.basics.diagnostics import Code
from eastgate.settings import Settings


class _Named(str):
    """An end that has a namespace and a name."""

    __slots__ = ("name", "namespace")

    kind: ClassVar[str]
    namespace: str
    name: str

    def __new__(cls, namespace: str, name: str) -> Self:
        end = super().__new__(cls, f"{cls.kind}:{namespace}/{name}")
        end.namespace, end.name = namespace, name
        return end

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.namespace, self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.namespace!r}, {self.name!r})"

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class _Plain(str):
    """An end that is one value."""

    __slots__ = ("value",)

    prefix: ClassVar[str] = ""
    value: str

    def __new__(cls, value: str) -> Self:
        end = super().__new__(cls, f"{cls.prefix}{value}")
        end.value = value
        return end

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (self.value,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"


class ServiceAccount(_Named):
    """Anybody who has the identity of a service account of the trust domain."""

    __slots__ = ()
    kind = "sa"


class Pod(_Named):
    """A pod, or all pods of the controller of that name, or the ExternalWorkload of that name."""

    __slots__ = ()
    kind = "pod"
    owner: ClassVar[str | None] = None
    """The kind of controller whose pods are meant; None: any."""


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
    """All pods of a Service, at the ports that its ports lead to."""

    __slots__ = ()
    kind = "service"


class Gateway(_Named):
    """A Gateway as a destination: all that it leads to."""

    __slots__ = ()
    kind = "gateway"


class Route(_Named):
    """An HTTPRoute as a destination: all that it leads to."""

    __slots__ = ()
    kind = "route"


class Backend(_Named):
    """A Backend, past every Gateway."""

    __slots__ = ()
    kind = "backend"


class AuthConfig(_Named):
    """A policy for hosts, for requests to the host of the question, or to its only host."""

    __slots__ = ()
    kind = "authconfig"


class Host(_Plain):
    """A host that policies are for: whichever has it decides. Without such policies, a host outside."""

    __slots__ = ()
    prefix = "host:"


class SpiffeId(_Plain):
    """Anybody who has a SPIFFE ID, `spiffe://trust-domain/path`."""

    __slots__ = ()


class CertificateName(_Plain):
    """Anybody whose certificate has a DNS name and no SPIFFE ID."""

    __slots__ = ()
    prefix = "id:"


class Address(_Plain):
    """Anybody at an IP address, without a certificate; as a destination, what is at the address."""

    __slots__ = ()
    prefix = "ip:"


class Anonymous(_Plain):
    """A caller without a certificate, at an address that nobody knows."""

    __slots__ = ()


class UnknownCaller(_Plain):
    """A caller of whom nothing is known, not even that it has no certificate: allowed is what every caller may."""

    __slots__ = ()


ANONYMOUS = Anonymous("anonymous")
UNKNOWN_CALLER = UnknownCaller("unknown")

Source: TypeAlias = ServiceAccount | Pod | SpiffeId | CertificateName | Address | Anonymous | UnknownCaller
Destination: TypeAlias = Pod | Service | Gateway | Route | Backend | AuthConfig | Host | Address

_DESTINATIONS: dict[str, type[Pod | Service | Gateway | Route | Backend | AuthConfig]] = {
    end.kind: end
    for end in (Pod, DeploymentPods, StatefulSetPods, DaemonSetPods, Service, Gateway, Route, Backend, AuthConfig)
}
WORKLOADS: dict[str, type[Pod]] = {end.kind: end for end in (Pod, DeploymentPods, StatefulSetPods, DaemonSetPods)}
NAMESPACED = frozenset({ServiceAccount.kind, *_DESTINATIONS})
_DEFAULT_NAMESPACE = Settings().namespace
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
"""The names that kubectl takes for a kind, and the one that questions have."""


def canonical(text: str) -> str:
    """Return `kind:rest` for what kubectl writes as `kind/rest`, or with another name of the kind."""
    before_colon, colon, after = text.partition(":")
    if colon:
        return f"{_ALIASES[before_colon]}:{after}" if before_colon in _ALIASES else text
    kind, slash, rest = text.partition("/")
    kind = _ALIASES.get(kind, kind)
    return f"{kind}:{rest}" if slash and kind in NAMESPACED else text


def source_of(text: str, settings: Settings, *, in_namespace: bool = False) -> Source:
    """Read who calls. Raises QuestionError where that is nobody.

    `in_namespace`: the namespace of the settings was given with the question, so that accounts without one have it.
    """
    text = canonical(text)
    kind, _, rest = text.partition(":")
    match kind:
        case "anonymous" if text == ANONYMOUS:
            return ANONYMOUS
        case "unknown" if text == UNKNOWN_CALLER:
            return UNKNOWN_CALLER
        case "spiffe" if text.startswith("spiffe://"):
            return SpiffeId(text)
        case "id" if text != kind:
            return CertificateName(rest)
        case "ip" if text != kind:
            return Address(rest)
        case "sa" if text != kind:
            return ServiceAccount(*_namespaced(text, BAD_SOURCE, settings, in_namespace=in_namespace))
        case _ if kind in WORKLOADS and text != kind:
            return WORKLOADS[kind](*_namespaced(text, BAD_SOURCE, settings))
    raise QuestionError(
        BAD_SOURCE,
        f"`{text}` is not a source",
        "write sa:<namespace>/<name>, pod:<namespace>/<name>, deployment:<namespace>/<name>, spiffe://.., id:<name>, "
        "ip:<address> or anonymous",
    )


def destination_of(text: str, settings: Settings) -> Destination:
    """Read what is called. Raises QuestionError where that is nothing."""
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
    return end(*_namespaced(text, BAD_DESTINATION, settings))


def _namespaced(text: str, code: Code, settings: Settings, *, in_namespace: bool = False) -> tuple[str, str]:
    """Split `kind:namespace/name`; the namespace of `kind:name` is that of the settings.

    An account needs a namespace that somebody gave: with a misspelt name it would be an account as good as any.
    """
    kind, _, rest = text.partition(":")
    namespace, slash, name = rest.partition("/")
    in_namespace = in_namespace or settings.namespace != _DEFAULT_NAMESPACE
    if not slash and (kind != ServiceAccount.kind or in_namespace):
        namespace, name = settings.namespace, rest
    if not namespace or not name or "/" in name:
        way_out = f"write {kind}:<namespace>/<name>" + ("" if slash else ", or give the namespace with -n")
        raise QuestionError(code, f"`{text}` names no {kind}", way_out)
    return namespace, name
