"""The two ends of a question: who calls, and what is called.

Each is a text, `kind:namespace/name`, which is how a command line, a decision table and the Python API write it:
`ServiceAccount("shop", "web") == "sa:shop/web"`. `source_of` and `destination_of` read such texts.
"""

from __future__ import annotations

from typing import ClassVar, Self, TypeAlias

from eastgate.api.questions.codes import BAD_DESTINATION, BAD_SOURCE, QuestionError
from eastgate.diagnostics import Code
from eastgate.ir import PolicyRef
from eastgate.settings import Settings

__all__ = [
    "ANONYMOUS",
    "UNKNOWN_CALLER",
    "Address",
    "Anonymous",
    "AuthConfig",
    "Backend",
    "CertificateName",
    "Destination",
    "Gateway",
    "Host",
    "Pod",
    "Route",
    "Service",
    "ServiceAccount",
    "Source",
    "SpiffeId",
    "UnknownCaller",
    "destination_of",
    "source_of",
]


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
    """An AuthConfig, for requests to the host of the question, or to its only host."""

    __slots__ = ()
    kind = "authconfig"

    @property
    def ref(self) -> PolicyRef:
        """Return the name of the policy."""
        return PolicyRef("AuthConfig", self.namespace, self.name, "authorino.kuadrant.io")


class Host(_Plain):
    """A host that Authorino is asked about: whichever AuthConfig is for it."""

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
    end.kind: end for end in (Pod, Service, Gateway, Route, Backend, AuthConfig)
}


def source_of(text: str, settings: Settings) -> Source:
    """Read who calls. Raises QuestionError where that is nobody."""
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
            return ServiceAccount(*_namespaced(text, BAD_SOURCE, settings))
        case "pod" if text != kind:
            return Pod(*_namespaced(text, BAD_SOURCE, settings))
    raise QuestionError(
        BAD_SOURCE,
        f"`{text}` is not a source",
        "write sa:<namespace>/<name>, pod:<namespace>/<name>, spiffe://.., id:<name>, ip:<address> or anonymous",
    )


def destination_of(text: str, settings: Settings) -> Destination:
    """Read what is called. Raises QuestionError where that is nothing."""
    if text.startswith(Address.prefix):
        return Address(text.removeprefix(Address.prefix))
    if text.startswith(Host.prefix) and text != Host.prefix:
        return Host(text.removeprefix(Host.prefix))
    end = _DESTINATIONS.get(text.partition(":")[0])
    if end is None:
        raise QuestionError(
            BAD_DESTINATION,
            f"`{text}` is not a destination",
            "write pod:, service:, gateway:, route:, backend: or authconfig:, and <namespace>/<name>, host:<host>, "
            "or ip:<address>",
        )
    return end(*_namespaced(text, BAD_DESTINATION, settings))


def _namespaced(text: str, code: Code, settings: Settings) -> tuple[str, str]:
    """Split `kind:namespace/name`; the namespace of `kind:name` is that of the settings."""
    kind, _, rest = text.partition(":")
    namespace, slash, name = rest.partition("/")
    if not slash and kind != "sa":  # a name that is misspelt would be an account as good as any
        namespace, name = settings.namespace, rest
    if not namespace or not name or "/" in name:
        raise QuestionError(code, f"`{text}` names no {kind}", f"write {kind}:<namespace>/<name>")
    return namespace, name
