"""The input of a scheme: the known part of the request, and the services that the scheme may ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from eastgate.basics.records import dataclass
from eastgate.cluster import Secret, Selector
from eastgate.ir.attributes import UNKNOWN, Unknown

if TYPE_CHECKING:
    from eastgate.dialects.kuadrant.authorino.calls import AnswerCache
    from eastgate.dialects.kuadrant.authorino.model import Credentials
    from eastgate.reading.jwt import KeySource, VerifiedTokens

SAMPLE_HEADERS: Final[Mapping[str, str]] = {"accept": "*/*"}
"""The headers of a sample request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """A request. UNKNOWN is an attribute that the question leaves out; None is an attribute that is known to be absent.

    `repr` shows nothing of it, because headers, path, claims and certificates can contain secrets.
    """

    time: float
    """Seconds since 1970."""
    host: str | Unknown = field(default=UNKNOWN, repr=False)
    method: str | Unknown = field(default=UNKNOWN, repr=False)
    path: str | Unknown = field(default=UNKNOWN, repr=False)
    """The path as sent, with its query."""
    scheme: str | Unknown = field(default=UNKNOWN, repr=False)
    protocol: str | Unknown = field(default=UNKNOWN, repr=False)
    headers: Mapping[str, str] | Unknown = field(default=UNKNOWN, repr=False)
    """All headers by their names in lower case. Values of one name are joined by commas, as in Envoy."""
    principal: str | Unknown | None = field(default=UNKNOWN, repr=False)
    """The identity of the peer, such as a SPIFFE ID, or None."""
    address: str | Unknown | None = field(default=UNKNOWN, repr=False)
    port: int | Unknown | None = field(default=UNKNOWN, repr=False)
    certificate: str | Unknown | None = field(default=UNKNOWN, repr=False)
    """The client's certificate as PEM, followed by its chain, possibly URL-encoded as in Envoy; or None."""
    destination: Mapping[str, object] | Unknown = field(default=UNKNOWN, repr=False)
    metadata: Mapping[str, object] | Unknown = field(default_factory=dict, repr=False)
    """Dynamic metadata from earlier filters of the proxy."""
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Context extensions of the proxy's route."""
    size: int | Unknown | None = field(default=UNKNOWN, repr=False)
    body: str | Unknown | None = field(default=None, repr=False)
    claims: Mapping[str, object] | None = field(default=None, repr=False)
    """The claims of an already verified token, for questions without a cluster."""
    presented: Mapping[Credentials, str] = field(default_factory=dict, repr=False)
    """Known credentials at these locations, in headers or a path that are otherwise unknown."""


def sample_request(method: str, path: str, host: str) -> RequestFacts:
    """Return a request of an anonymous caller, with `SAMPLE_HEADERS`."""
    return RequestFacts(
        time=0.0,
        host=host,
        method=method,
        path=path,
        scheme="https",
        protocol="HTTP/1.1",
        headers=SAMPLE_HEADERS,
        principal=None,
        address="192.0.2.1",
        port=443,
        certificate=None,
        destination={},
        size=0,
    )


class Unavailable(Exception):  # noqa: N818 - a state of the world, which is answered with a denial
    """A required service is unavailable. The message contains no credential, and may be shown."""


@dataclass(frozen=True, slots=True)
class Review:
    """The answer of the API server. For a token, `status` is its bearer. For an access, only the reason is set."""

    granted: bool
    reason: str = ""
    status: Mapping[str, object] = field(default_factory=dict, repr=False, hash=False)


class Reviewer(Protocol):
    """The API server as a reviewer of tokens and accesses. Raises `Unavailable`."""

    def token(self, token: str, audiences: tuple[str, ...]) -> Review:
        """Return a TokenReview."""
        ...

    def access(self, spec: Mapping[str, object]) -> Review:
        """Return a SubjectAccessReview with this `spec`."""
        ...


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """The response of a server. The body may contain secrets."""

    status: int
    body: bytes = field(repr=False)
    content_type: str = ""


class PermissionChecker(Protocol):
    """A client of SpiceDB servers. Raises `Unavailable`."""

    def check(self, question: PermissionQuestion) -> PermissionAnswer:
        """Return whether the subject has the permission."""
        ...


@dataclass(frozen=True, slots=True)
class PermissionQuestion:
    """A question to a SpiceDB server: kind and name of the resource and of the subject, and the permission."""

    endpoint: str
    resource: tuple[str, str]
    permission: str
    subject: tuple[str, str]
    insecure: bool = False
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """The answer of a SpiceDB server. `checked_at` names the state of the data that was checked."""

    permissionship: int
    checked_at: str = ""

    HAS_PERMISSION: ClassVar[int] = 2


class Background(Protocol):
    """Runs tasks in its own threads, so that no request waits for them."""

    @property
    def fetcher(self) -> Fetcher:
        """Return the fetcher that the tasks use."""

    def submit(self, task: Callable[[], None]) -> None:
        """Run a task, unless there are too many tasks already."""
        ...


class Fetcher(Protocol):
    """A client of HTTP servers. Raises `Unavailable`."""

    def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, timeout: float | None = None
    ) -> ServerResponse:
        """Send one request and return its response, with any status.

        `timeout` is the timeout of the scheme, in seconds. With 0 the fetcher waits as long as it ever does.
        """
        ...


def _no_secrets(namespace: str | None, selector: Selector) -> Iterable[Secret]:  # noqa: ARG001 - there are none
    return ()


def _no_secret(namespace: str, name: str) -> Secret | None:  # noqa: ARG001 - there is none
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of an evaluation, and its strictness. A missing service cannot be asked, which denies."""

    secrets: Callable[[str | None, Selector], Iterable[Secret]] = _no_secrets
    """Returns the Secrets of one namespace, or of all, that a selector selects."""
    secret: Callable[[str, str], Secret | None] = _no_secret
    """Returns the Secret with a namespace and a name."""
    api_key_owner: Callable[[str | None, Selector, bytes], Secret | None] | None = None
    """Finds the Secret with an API key. Without it, each Secret of `secrets` is compared."""
    keys: KeySource | None = None
    """The keys of issuers, by the issuer's URL."""
    key_sets: KeySource | None = None
    """The keys of key sets (`jwksUrl`), by their URL."""
    tokens: VerifiedTokens | None = None
    """A cache of verified tokens, so that each token is verified once."""
    reviewer: Reviewer | None = None
    fetcher: Fetcher | None = None
    permissions: PermissionChecker | None = None
    background: Background | None = None
    """Sends callbacks. Without it, none are sent."""
    cache: AnswerCache | None = None
    leeway: float = 30
    """Seconds by which the clocks of token issuers may be ahead. It does not extend the life of a token."""
    at_once: Services | None = field(default=None, repr=False)
    """The same services, limited to answers that are available without waiting."""
    authorino_compat: bool = False
    """Whether a `when` that errs skips the guarded part, as in Authorino. Otherwise it denies."""
    any_spelling: bool = False
    """Whether expressions see a path with any spelling, as in Authorino. Otherwise the path must be canonical."""
