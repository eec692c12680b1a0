"""Authorizers: who must agree to a request beside the rules, their answers, and the steps that led to each."""

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
    """The value that one expression looked at. `saw` is masked; None where it is absent or unknown."""

    expression: str
    saw: str | None
    verdict: StepVerdict
    reason: str = ""
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class RulingStep:
    """One thing that an authorizer evaluated. `reason` is a sentence; `seen` are the expressions, in order."""

    kind: str
    name: str
    verdict: StepVerdict
    reason: str
    seen: tuple[Seen, ...] = ()
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Ruling:
    """The answer of an authorizer that we run ourselves, and the status that a denied client is to see.

    `steps` explain the answer, and `document` is what the authorizer looked at, without secrets. `headers` are for the
    application if it allows, and for the client if it denies. The application must not get the `removed` headers of the
    request, nor the `parameters` of its query, as they are spelled there, nor the `cookies`, as the client sent them. A
    denied client gets `body`, and the proxy `metadata`. `origin` is the part of a policy that decided, if the rules are
    of several policies.
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
        """Return whether it has steps, or a document."""
        return bool(self.steps or self.document)

    def __str__(self) -> str:
        return f"{'allow' if self.allowed else 'deny'}: {self.text}"


class Reply(enum.StrEnum):
    """The answer of an authorizer that runs elsewhere."""

    ALLOW = "allow"
    DENY = "deny"
    ERROR = "error"


Answer = str | Ruling  # a `Reply`, or the word of one


def consents(answer: Answer | None) -> bool:
    """Return whether an answer allows the request. An error and no answer at all do not."""
    return answer.allowed if isinstance(answer, Ruling) else answer == Reply.ALLOW


class ExternalProtocol(enum.StrEnum):
    """The protocol that an external authorizer is asked by."""

    GRPC = "GRPC"
    HTTP = "HTTP"


@dataclass(frozen=True, slots=True)
class ExternalAuthorizer:
    """A Service that decides for itself, and how it is asked. Names of headers are in lower case.

    An empty `allowed_headers` means all headers of the request for GRPC, and none beyond those that are always sent
    for HTTP; an empty `response_headers` all headers of its answer. Bodies up to `max_body` bytes are shown to it, and
    longer ones refused; 0: it is shown none.
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
    """The name of an external authorizer, which knows how to ask it.

    Two policies may ask one Service in different ways. For whoever gives answers by names that is one authorizer: a
    plain text equals every name that is spelled so. For whoever asks it is two: the names do not equal each other.
    """

    __slots__ = ("external",)

    external: ExternalAuthorizer

    def __new__(cls, external: ExternalAuthorizer) -> AuthorizerName:
        """Make the name of an authorizer."""
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
    """The request as it was sent, with its credentials: authorizers may look at it, and rules do not.

    None stands for unknown; `claims` are those of a token that somebody has verified already, and with `no_token` there
    is no token. A `body` of None is none, and `port` that of the client's end of the connection. Without `explain`, no
    steps and no document are asked for. Without `may_wait`, an authorizer that would have to wait for somebody, or to
    compute for long, raises WouldWait.
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


class WouldWait(Exception):  # noqa: N818 - says what is known
    """An authorizer cannot answer at once, and has sent no request yet."""


class Authorizer(Protocol):
    """Answers for requests. It never raises for anything in a request, and never allows by an error.

    What is unknown of a request is unknown to the authorizer too: it allows only what it allows in any case.
    """

    def refuse_path(self, request: Request) -> Ruling | None:
        """Return the refusal of a request whose path is ambiguous, or not in its canonical form.

        None where the path is neither, or the answer cannot depend on it.
        """
        ...

    def answer(self, request: Request, raw: RawRequest) -> Ruling:
        """Decide about one request. Raises WouldWait, and only where the request says so."""
        ...
