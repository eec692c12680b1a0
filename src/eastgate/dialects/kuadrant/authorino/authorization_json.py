"""The authorization JSON: the request, and the findings of the steps so far.

It is kept twice. `plain` is what expressions compare; `masked` has `***` where a credential is, and everything that
leaves the evaluator is made from it. `unknown` are the unknown paths, each with its name for a person;
`hidden` are the paths where the two differ.
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
)  # in this order, and each only with something in it


class AuthorizationJson:
    """The authorization JSON of one request, which grows with each step under `auth`.

    All of it is made once somebody looks at it: many schemes look at the identity alone.
    """

    __slots__ = ("_auth", "_gateway", "_hidden", "_learned", "_masked_auth", "_request", "_unknown")

    def __init__(self, request: Callable[[], RequestPart], gateway: Callable[[], RequestPart] | None = None) -> None:
        """`request` makes what is said of the request, and returns the same each time; `gateway` what the filter of a
        gateway says of it.
        """
        self._request = request
        self._gateway = gateway or request
        self._learned: tuple[_Learned, ...] = ()
        self._auth = self._masked_auth = _NOTHING_LEARNED
        self._unknown: dict[Path, str] = {}
        self._hidden: dict[Path, str] = {}

    @property
    def plain(self) -> Object:
        """Return what expressions compare."""
        return _with_auth(self._request().plain, self._findings())

    @property
    def masked(self) -> Object:
        """Return the document with `***` where a credential is."""
        self._masked_auth = _learn(self._masked_auth, self._learned, masked=True)
        return _with_auth(self._request().masked, self._masked_auth.auth)

    def _findings(self) -> Object:
        self._auth = _learn(self._auth, self._learned, masked=False)
        return self._auth.auth

    @property
    def unknown(self) -> Mapping[Path, str]:
        """Return the unknown paths, each with its name for a person."""
        return {**self._request().unknown, **self._unknown}

    @property
    def hidden(self) -> Mapping[Path, str]:
        """Return the paths where the two twins differ."""
        return {**self._request().hidden, **self._hidden}

    # For an expression, of which it is known what it looks at

    def unknown_to(self, mentions: Collection[Path]) -> str | None:
        """Return the name of something unknown that an expression looks at."""
        return touched(mentions, self._unknown if _are_in_auth(mentions) else self.unknown)

    def hidden_from(self, mentions: Collection[Path]) -> str | None:
        """Return the name of something that an expression looks at, and that must not be shown."""
        return touched(mentions, self._hidden if _are_in_auth(mentions) else self.hidden)

    def plain_for(self, mentions: Collection[Path]) -> Object:
        """Return as much of the document as a selector can look at, or more."""
        return {"auth": self._findings()} if _are_in_auth(mentions) else self.plain

    def at_gateway(self) -> AuthorizationJson:
        """Return the attributes that the filter of a gateway has, before the first step."""
        return AuthorizationJson(self._gateway)

    # Steps

    def copied(self) -> AuthorizationJson:
        """Return a copy that learns on its own."""
        copy = AuthorizationJson(self._request, self._gateway)
        copy._auth, copy._masked_auth, copy._learned = self._auth, self._masked_auth, self._learned
        copy._unknown, copy._hidden = dict(self._unknown), dict(self._hidden)
        return copy

    def learn(self, part: str, name: str | None, value: object, masked: object) -> None:
        """Put the finding of a step under `auth`: the identity as it is, the others by the name of the step."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        self._learned += (_Learned(part, name, value, masked),)
        self._unknown.pop(path, None)
        if self._hidden:
            self._hidden = {each: called for each, called in self._hidden.items() if each[: len(path)] != path}
        self._hidden.update((path_hidden, f"auth.{part}") for path_hidden in _differences(value, masked, path))

    def forget(self, part: str, name: str | None, why: str) -> None:
        """Note that the finding of a step is unknown."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        self._unknown[path] = why


def _with_auth(request: Object, auth: Object) -> Object:
    return {**request, "auth": auth} if auth else request


def _are_in_auth(mentions: Collection[Path]) -> bool:
    """Tell whether all that is mentioned is a finding of steps."""
    return all(mention and mention[0] == "auth" for mention in mentions)


@dataclass(frozen=True, slots=True)
class _Learned:
    """The finding of a step, and its twin without secrets."""

    part: str
    name: str | None
    value: object
    masked: object


@dataclass(frozen=True, slots=True)
class _Findings:
    """What is under `auth` after so many findings."""

    count: int
    auth: Object


_NOTHING_LEARNED = _Findings(0, {})


def _learn(before: _Findings, learned: tuple[_Learned, ...], *, masked: bool) -> _Findings:
    """Return the findings with those that came since."""
    if before.count == len(learned):
        return before
    auth = dict(before.auth)
    for each in learned[before.count :]:
        finding = each.masked if masked else each.value
        given = finding if each.name is None else {**object_in(auth.get(each.part, {})), each.name: finding}
        auth[each.part] = written_in_order(given)
    return _Findings(len(learned), {part: auth[part] for part in _PARTS if auth.get(part) is not None})


def _differences(value: object, masked: object, path: Path) -> Iterator[Path]:
    """Yield where the two differ, as deep inside as they are still objects."""
    if value is masked or (not isinstance(value, dict) and value == masked):
        return
    if not isinstance(value, dict) or not isinstance(masked, dict) or value.keys() != masked.keys():
        yield path
        return
    for key, item in value.items():
        yield from _differences(item, masked[key], (*path, key))


def authorization_json_of(request: RequestFacts, credentials: tuple[Credentials, ...]) -> AuthorizationJson:
    """Return the document before the first step. `credentials` are the locations that this scheme looks at."""
    made: list[RequestPart] = []

    def part() -> RequestPart:
        if not made:
            made.append(request_part(request, credentials))
        return made[0]

    return AuthorizationJson(part, lambda: part_at_gateway(request, part()))
