"""Large numbers of routes, rules and keys of a gateway, and sample requests with the expected verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.attacks.auth_policies import NO_CALLER, api_keys, auth_policy, gateway_route, secret
from tests.attacks.sizes import Sample, Sized
from tests.differential.asking import Caller, Http
from tests.differential.world import Manifest

__all__ = ["GATEWAY_SETS", "MANY_AT_A_GATEWAY"]

MANY_AT_A_GATEWAY = 2_000

_ANONYMOUS = Caller(None, "127.0.0.2")
_REST_CLOSED = auth_policy("HTTPRoute:all", {"*": {"identity": [NO_CALLER]}}, name="rest")


def _sample(allowed: bool, http: Http, caller: Caller = _ANONYMOUS) -> Sample:
    return Sample(allowed, http, caller)


def _some(number: int) -> tuple[int, ...]:
    return 0, number // 2, number - 1


def _access_policy(name: str, rules: Sequence[Manifest], action: str = "Allow") -> Manifest:
    named = [{"name": f"r{index}", **rule} for index, rule in enumerate(rules)]
    targets = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"}]
    return {
        "apiVersion": "agentic.networking.x-k8s.io/v1alpha1",
        "kind": "XAccessPolicy",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"targetRefs": targets, "action": action, "rules": named},
    }


def _policies(rules: Sequence[Manifest]) -> list[Manifest]:
    """Return policies with these rules. A policy has at most ten rules."""
    return [_access_policy(f"p{at}", rules[at : at + 10]) for at in range(0, len(rules), 10)]


def accounts(number: int) -> Sized:
    """Return rules that each allow an account."""
    rules = [{"source": {"type": "ServiceAccount", "serviceAccount": {"name": f"c{at}"}}} for at in range(number)]
    callers = [Caller(f"spiffe://td/ns/a/sa/c{at}", "127.0.0.2") for at in (*_some(number), number)]
    samples = [_sample(caller != callers[-1], Http(host="a"), caller) for caller in callers]
    return Sized(_policies(rules), (*samples, _sample(False, Http(host="a"))))


def paths(number: int) -> Sized:
    """Return rules that each allow a path."""
    rules = [
        {"authorization": {"type": "Inline", "paths": [{"type": "Exact", "value": f"/p{at}"}]}} for at in range(number)
    ]
    samples = [_sample(at < number, Http(host="a", target=f"/p{at}")) for at in (*_some(number), number)]
    return Sized(_policies(rules), tuple(samples))


def routes_by_path(number: int) -> Sized:
    """Return routes that allow all callers, and one that denies all."""
    matches: list[Manifest] = [{"path": {"type": "Exact", "value": f"/p{at}"}} for at in range(number)]
    routes = [gateway_route(f"r{at}", *matches[at : at + 64]) for at in range(0, number, 64)]
    allowed = [_sample(True, Http(host="a", target=f"/p{at}")) for at in _some(number)]
    denied = [_sample(False, Http(host="a", target=path)) for path in (f"/p{number}", "/p0/x", "/")]
    return Sized([*routes, _REST_CLOSED], (*allowed, *denied))


def routes_by_host(number: int) -> Sized:
    """Return hostnames of routes that allow all callers, and one that denies all."""
    names = [f"h{at}.example" for at in range(number)]
    routes = [gateway_route(f"r{at}", hostnames=names[at : at + 16]) for at in range(0, number, 16)]
    allowed = [_sample(True, Http(host=f"h{at}.example")) for at in _some(number)]
    denied = [_sample(False, Http(host=host)) for host in (f"h{number}.example", "x.h0.example", "a")]
    return Sized([*routes, _REST_CLOSED], (*allowed, *denied))


def closed_paths(number: int) -> Sized:
    """Return rules of an AuthPolicy that each deny a path."""
    rules = [{"paths": [f"/p{at}" for at in range(start, min(start + 64, number))]} for start in range(0, number, 64)]
    policy = auth_policy("Gateway:gw", {"*": {"identity": [NO_CALLER]}}, rules)
    samples = [_sample(at >= number, Http(host="a", target=f"/p{at}")) for at in (*_some(number), number)]
    return Sized([policy], tuple(samples))


def keys(number: int) -> Sized:
    """Return API keys, each in its own Secret."""
    secrets = [secret(f"s{at}", f"key-{at}") for at in range(number)]
    policy = auth_policy("Gateway:gw", {"*": {"identity": [api_keys()]}})
    samples = [
        _sample(at < number, Http(host="a", headers=(("authorization", f"Bearer key-{at}"),)))
        for at in (*_some(number), number)
    ]
    return Sized([*secrets, policy], (*samples, _sample(False, Http(host="a"))))


GATEWAY_SETS: dict[str, Callable[[int], Sized]] = {
    made.__name__: made for made in (accounts, paths, routes_by_path, routes_by_host, closed_paths, keys)
}
