"""Authorizers, their answers, and the steps that led to each answer."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.ir.attributes import Headers, Unknown
from eastgate.ir.provenance import Origin

if TYPE_CHECKING:
    from eastgate.ir.requests import Request


class StepVerdict(enum.StrEnum):
    """The result of a step of a ruling."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Seen:
    """The value that one expression read. `saw` is masked; it is None if the value is absent or unknown."""

    expression: str
    saw: str | None
    verdict: StepVerdict
    reason: str = ""
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RulingStep:
    """One step of an evaluation by an authorizer. `reason` is a sentence; `seen` are the expressions, in order."""

    kind: str
    name: str
    verdict: StepVerdict
    reason: str
    seen: tuple[Seen, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Ruling:
    """The answer of an authorizer that Eastgate runs itself, and the status for a denied client.

    `steps` explain the answer. `document` is the input of the authorizer, without secrets. If the answer allows, the
    application gets `headers`. The proxy removes the `removed` headers, the `parameters` of the query (as they are
    spelled there) and the `cookies` (as the client sent them). If the answer denies, the client gets `headers` and
    `body`. The proxy gets `metadata`. `origin` is the part of a policy that decided, if the rules are from several
    policies.
    """

    allowed: bool
    status: int
    text: str
    steps: tuple[RulingStep, ...] = field(default=(), compare=False, repr=False)
    document: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    removed: tuple[str, ...] = field(default=(), compare=False, repr=False)
    parameters: tuple[str, ...] = field(default=(), compare=False, repr=False)
    cookies: tuple[str, ...] = field(default=(), compare=False, repr=False)
    body: str = field(default="", compare=False, repr=False)
    metadata: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def is_explained(self) -> bool:
        """Return whether the ruling has steps or a document."""
        return bool(self.steps or self.document)

    def __str__(self) -> str:
        return f"{'allow' if self.allowed else 'deny'}: {self.text}"


class Reply(enum.StrEnum):
    """The answer of an external authorizer."""

    ALLOW = "allow"
    DENY = "deny"
    ERROR = "error"


Answer = str | Ruling  # a `Reply`, or its value


def consents(answer: Answer | None) -> bool:
    """Return whether an answer allows the request. An error and a missing answer do not."""
    return answer.allowed if isinstance(answer, Ruling) else answer == Reply.ALLOW


class ExternalProtocol(enum.StrEnum):
    """The protocol of the requests to an external authorizer."""

    GRPC = "GRPC"
    HTTP = "HTTP"


@dataclass(frozen=True, slots=True)
class ExternalAuthorizer:
    """An external authorizer: its Service, and the form of the requests to it. Header names are in lower case.

    An empty `allowed_headers` means all headers of the request for GRPC; for HTTP it means only the headers that are
    always sent. An empty `response_headers` means all headers of the answer. The authorizer gets bodies of up to
    `max_body` bytes; longer bodies are refused. With 0, it gets no body.
    """

    namespace: str
    service: str
    port: int
    protocol: ExternalProtocol = ExternalProtocol.GRPC
    path: str = ""
    allowed_headers: frozenset[str] = frozenset()
    response_headers: frozenset[str] = frozenset()
    max_body: int = 0

    def __str__(self) -> str:
        return f"{self.service}.{self.namespace}:{self.port}"


class AuthorizerName(str):
    """The name of an external authorizer, together with its `ExternalAuthorizer`.

    Two policies may ask one Service in different ways. A question that gives answers by name means both: a plain text
    equals every name with this spelling. For requests to the Service they are two: two such names are not equal.
    """

    __slots__ = ("external",)

    external: ExternalAuthorizer

    def __new__(cls, external: ExternalAuthorizer) -> AuthorizerName:
        """Return the name of an authorizer."""
        name = super().__new__(cls, str(external))
        name.external = external
        return name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AuthorizerName):
            return self.external == other.external
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


@dataclass(frozen=True, slots=True)
class RawRequest:
    """The request as it was sent, with its credentials. Authorizers may read it; rules do not.

    None means unknown. `claims` are those of a token that is already verified. With `no_token`, the request has no
    token. A `body` of None is an absent body, and `port` is the port of the client's end. Without `explain`, rulings
    need no steps and no document. Without `may_wait`, an authorizer that would wait for a server or compute for long
    raises WouldWait.
    """

    headers: Headers | None = field(default=None, repr=False)
    http_protocol: str | None = None
    claims: Mapping[str, object] | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    scheme: str | None = None
    port: int | None = None
    body: str | Unknown | None = field(default=None, repr=False)
    size: int | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    explain: bool = True
    may_wait: bool = True
    no_token: bool = False


class WouldWait(Exception):  # noqa: N818 - not an error: the answer takes longer
    """An authorizer cannot answer at once. It has not sent a request yet."""


class Authorizer(Protocol):
    """Answers for requests. It never raises for any content of a request, and never allows because of an error.

    An attribute that is unknown for the request is unknown for the authorizer. It allows only if every value is
    allowed.
    """

    def refuse_path(self, request: Request) -> Ruling | None:
        """Return the refusal of a request whose path is ambiguous or not canonical, or None.

        It is also None if the answer cannot depend on the path.
        """
        ...

    def answer(self, request: Request, raw: RawRequest) -> Ruling:
        """Decide about one request. Raises WouldWait, but only if the request has no `may_wait`."""
        ...
