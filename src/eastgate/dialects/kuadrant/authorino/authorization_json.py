"""The authorization JSON: the request, and the results of the steps so far.

It has two versions. `plain` has the values for expressions. `masked` has `***` for each credential, and is the source
of every output of the evaluator. `unknown` are the unknown paths, each with its name for a person. `hidden` are the
paths where the two versions differ.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.model import Credentials
from eastgate.dialects.kuadrant.authorino.paths import Path, touched
from eastgate.dialects.kuadrant.authorino.request_document import (
    Object,
    RequestPart,
    object_in,
    part_at_gateway,
    request_part,
    written_in_order,
)

_PARTS: Final = (
    "identity",
    "metadata",
    "authorization",
    "response",
)  # in this order, and each only if it is not empty


class AuthorizationJson:
    """The authorization JSON of one request. Each step adds its result under `auth`.

    The document is built on first use, because many schemes read the identity alone.
    """

    __slots__ = ("_auth", "_gateway", "_hidden", "_learned", "_masked_auth", "_request", "_unknown")

    def __init__(self, request: Callable[[], RequestPart], gateway: Callable[[], RequestPart] | None = None) -> None:
        """`request` returns the request part, the same each time.

        `gateway` returns the attributes of the gateway's filter.
        """
        self._request = request
        self._gateway = gateway or request
        self._learned: tuple[_Learned, ...] = ()
        self._auth = self._masked_auth = _NOTHING_LEARNED
        self._unknown: dict[Path, str] = {}
        self._hidden: dict[Path, str] = {}

    @property
    def plain(self) -> Object:
        """Return the document for expressions."""
        return _with_auth(self._request().plain, self._findings())

    @property
    def masked(self) -> Object:
        """Return the document with `***` for each credential."""
        self._masked_auth = _with_later_findings(self._masked_auth, self._learned, masked=True)
        return _with_auth(self._request().masked, self._masked_auth.auth)

    def _findings(self) -> Object:
        self._auth = _with_later_findings(self._auth, self._learned, masked=False)
        return self._auth.auth

    @property
    def unknown(self) -> Mapping[Path, str]:
        """Return the unknown paths, each with its name for a person."""
        return {**self._request().unknown, **self._unknown}

    @property
    def hidden(self) -> Mapping[Path, str]:
        """Return the paths where the two versions differ."""
        return {**self._request().hidden, **self._hidden}

    # For an expression with known mentions

    def unknown_to(self, mentions: Collection[Path]) -> str | None:
        """Return the name of an unknown value that an expression reads."""
        return touched(mentions, self._unknown if _are_in_auth(mentions) else self.unknown)

    def hidden_from(self, mentions: Collection[Path]) -> str | None:
        """Return the name of a secret value that an expression reads."""
        return touched(mentions, self._hidden if _are_in_auth(mentions) else self.hidden)

    def plain_for(self, mentions: Collection[Path]) -> Object:
        """Return at least the parts of the document that a selector can read."""
        return {"auth": self._findings()} if _are_in_auth(mentions) else self.plain

    def at_gateway(self) -> AuthorizationJson:
        """Return the attributes of the gateway's filter, before the first step."""
        return AuthorizationJson(self._gateway)

    # Steps

    def copied(self) -> AuthorizationJson:
        """Return a copy that is independent of later results."""
        copy = AuthorizationJson(self._request, self._gateway)
        copy._auth, copy._masked_auth, copy._learned = self._auth, self._masked_auth, self._learned
        copy._unknown, copy._hidden = dict(self._unknown), dict(self._hidden)
        return copy

    def add_finding(self, part: str, name: str | None, value: object, masked: object) -> None:
        """Put the result of a step under `auth`: the identity itself, other results by the name of the step."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        self._learned += (_Learned(part, name, value, masked),)
        self._unknown.pop(path, None)
        if self._hidden:
            self._hidden = {each: called for each, called in self._hidden.items() if each[: len(path)] != path}
        self._hidden.update((path_hidden, f"auth.{part}") for path_hidden in _differences(value, masked, path))

    def add_unknown(self, part: str, name: str | None, why: str) -> None:
        """Record that the result of a step is unknown."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        self._unknown[path] = why


def _with_auth(request: Object, auth: Object) -> Object:
    return {**request, "auth": auth} if auth else request


def _are_in_auth(mentions: Collection[Path]) -> bool:
    """Return whether all mentioned paths are results of steps."""
    return all(mention and mention[0] == "auth" for mention in mentions)


@dataclass(frozen=True, slots=True)
class _Learned:
    """The result of a step, and its version without secrets."""

    part: str
    name: str | None
    value: object
    masked: object


@dataclass(frozen=True, slots=True)
class _Findings:
    """The value of `auth` after a number of results."""

    count: int
    auth: Object


_NOTHING_LEARNED = _Findings(0, {})


def _with_later_findings(before: _Findings, learned: tuple[_Learned, ...], *, masked: bool) -> _Findings:
    """Return the findings with all later results added."""
    if before.count == len(learned):
        return before
    auth = dict(before.auth)
    for each in learned[before.count :]:
        finding = each.masked if masked else each.value
        given = finding if each.name is None else {**object_in(auth.get(each.part, {})), each.name: finding}
        auth[each.part] = written_in_order(given)
    return _Findings(len(learned), {part: auth[part] for part in _PARTS if auth.get(part) is not None})


def _differences(value: object, masked: object, path: Path) -> Iterator[Path]:
    """Yield the paths where the two differ, at the deepest level where both are objects."""
    if value is masked or (not isinstance(value, dict) and value == masked):
        return
    if not isinstance(value, dict) or not isinstance(masked, dict) or value.keys() != masked.keys():
        yield path
        return
    for key, item in value.items():
        yield from _differences(item, masked[key], (*path, key))


def authorization_json_of(request: RequestFacts, credentials: tuple[Credentials, ...]) -> AuthorizationJson:
    """Return the document before the first step. `credentials` are the locations that this scheme reads."""
    made: list[RequestPart] = []

    def part() -> RequestPart:
        if not made:
            made.append(request_part(request, credentials))
        return made[0]

    return AuthorizationJson(part, lambda: part_at_gateway(request, part()))
