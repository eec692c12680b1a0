"""Large numbers of policies: matchers that grow with every rule must not break enforcement.

Each set has `MANY` rules of one kind on the attacked port, and samples: requests with their source address and the
expected verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.attacks.policies import LINKERD, linkerd_route, linkerd_server, only, resource
from tests.differential.asking import Caller, Http
from tests.differential.world import Manifest

__all__ = ["MANY", "SETS", "Sample", "Sized"]

MANY = 10_000
_ADDRESS = "127.0.0.2"
_EVERYTHING = {"path": {"type": "PathPrefix", "value": "/"}}


@dataclass(frozen=True, slots=True)
class Sample:
    """A request of a caller, or bytes that are not HTTP, and the expected verdict."""

    allowed: bool
    http: Http | None = field(default_factory=Http)
    caller: Caller = field(default_factory=lambda: Caller("spiffe://td/ns/a/sa/y", _ADDRESS))


@dataclass(frozen=True, slots=True)
class Sized:
    """Policies with many rules, and samples with expected verdicts."""

    policies: list[Manifest]
    samples: tuple[Sample, ...]


def _address(number: int) -> str:
    """Return a loopback address. No network of a set contains two of these addresses."""
    return f"127.{64 + number // 62_500}.{number // 250 % 250 + 1}.{number % 250 + 1}"


def _networks(number: int, protocol: str, http: Http | None) -> Sized:
    def network(place: int) -> list[Manifest]:
        name = f"n{place}"
        server = {"group": LINKERD, "kind": "Server", "name": "server"}
        needed = [{"group": LINKERD, "kind": "NetworkAuthentication", "name": name}]
        return [
            resource("NetworkAuthentication", name, "v1alpha1", networks=[{"cidr": f"{_address(place)}/32"}]),
            resource("AuthorizationPolicy", name, "v1alpha1", targetRef=server, requiredAuthenticationRefs=needed),
        ]

    selector = {"matchLabels": {"app": "server"}}
    server = resource("Server", "server", "v1beta3", podSelector=selector, port=80, proxyProtocol=protocol)
    listed = [one for place in range(number) for one in network(place)]
    ends = [Sample(True, http, Caller(None, _address(place))) for place in (0, number // 2, number - 1)]
    return Sized([server, *listed], (*ends, Sample(False, http, Caller(None, _address(number)))))


def networks_of_an_opaque_port(number: int) -> Sized:
    """Return networks for a port without HTTP."""
    return _networks(number, "opaque", None)


def networks_of_a_detected_port(number: int) -> Sized:
    """Return networks for a port with HTTP detection, where policies also decide about other bytes."""
    sized = _networks(number, "unknown", Http())
    raw = [Sample(one.allowed, None, one.caller) for one in sized.samples]
    return Sized(sized.policies, (*sized.samples, *raw))


def _all_but(matches: list[Manifest]) -> list[Manifest]:
    """Return routes that allow every request without these matches. A route has at most 128 matches."""
    listed = [matches[start : start + 128] for start in range(0, len(matches), 128)]
    return [
        *linkerd_server(),
        *(one for place, some in enumerate(listed) for one in linkerd_route(f"r{place}", *some, allowed=False)),
        *linkerd_route("rest", _EVERYTHING, allowed=True),
    ]


def headers_with_a_catch_all(number: int) -> Sized:
    """Return routes that deny values of a header, and allow all other requests."""
    policies = _all_but([{"headers": [{"name": "k", "value": f"v{place}"}]} for place in range(number)])
    denied = [Sample(False, Http(headers=(("k", f"v{place}"),))) for place in (0, number // 2, number - 1)]
    return Sized(policies, (*denied, Sample(True, Http(headers=(("k", f"v{number}"),))), Sample(True)))


def names_of_headers(number: int) -> Sized:
    """Return routes that deny one value each of many headers."""
    policies = _all_but([{"headers": [{"name": f"k{place}", "value": "v"}]} for place in range(number)])
    denied = [Sample(False, Http(headers=((f"k{place}", "v"),))) for place in (0, number // 2, number - 1)]
    return Sized(policies, (*denied, Sample(True, Http(headers=((f"k{number}", "v"),))), Sample(True)))


def paths(number: int) -> Sized:
    """Return rules that allow paths and prefixes."""
    listed = [f"/p{place}" if place % 2 else f"/q{place}/*" for place in range(number)]
    asked = [f"/p{place}" if place % 2 else f"/q{place}/x" for place in (0, 1, number // 2, number - 1)]
    allowed = [Sample(True, Http(target=path)) for path in asked]
    return Sized(only(*listed), (*allowed, Sample(False, Http(target=f"/p{number + 1}")), Sample(False)))


def _gep(rules: list[Manifest], level: str) -> list[Manifest]:
    [policy] = only("/")
    return [{**policy, "spec": {**policy["spec"], "enforcementLevel": level, "rules": rules}}]


def identities(number: int) -> Sized:
    """Return rules that allow identities to connect."""
    names = [f"spiffe://td/ns/a/sa/c{place}" for place in range(number)]
    rules: list[Manifest] = [{"authorizationSource": {"identities": names}}]
    allowed = [Sample(True, Http(), Caller(names[place], _ADDRESS)) for place in (0, number // 2, number - 1)]
    strangers = (Sample(False), Sample(False, Http(), Caller(None, _ADDRESS)))
    return Sized(_gep(rules, "NETWORK"), (*allowed, *strangers))


def methods(number: int) -> Sized:
    """Return rules that each allow a method on one path."""
    rules = [{"applicationAttributes": {"methods": ["GET"], "paths": [f"/m{place}"]}} for place in range(number)]
    allowed = [Sample(True, Http(target=f"/m{place}")) for place in (0, number // 2, number - 1)]
    denied = (Sample(False, Http("POST", "/m0")), Sample(False, Http(target=f"/m{number}")))
    return Sized(_gep(list(rules), "APPLICATION"), (*allowed, *denied))


SETS: dict[str, Callable[[int], Sized]] = {
    made.__name__: made
    for made in (
        networks_of_an_opaque_port,
        networks_of_a_detected_port,
        headers_with_a_catch_all,
        names_of_headers,
        paths,
        identities,
        methods,
    )
}
