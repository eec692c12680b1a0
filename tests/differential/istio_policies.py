"""Generated policies of Istio for the small world, as our proxies enforce them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.differential.world import Manifest

__all__ = ["istio"]

_GROUP = "security.istio.io"
_Values = st.SearchStrategy[Any]


def _some(*values: str) -> _Values:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


_PRINCIPALS = (
    *("td/ns/a/sa/x", "td/ns/b/sa/y", "evil/ns/a/sa/x", "td/ns/a/*", "*/sa/x", "td/*", "*", "*load", "td/ns/*/sa/x"),
    *("*/ns/a/*", "cluster.local/ns/a/sa/x", "td/workload"),
)
_NAMESPACES = ("a", "b", "elsewhere", "*", "a*", "*where", "e*e")
_ACCOUNTS = ("a/x", "b/y", "x", "a/with.dots.x", "elsewhere/x")
_BLOCKS = ("127.0.0.0/8", "127.0.0.2", "127.10.0.0/16", "127.64.0.0/10", "0.0.0.0/0", "::/0")
_PATHS = (
    *("/", "/a", "/a/*", "*/b", "/a/b", "*", "/A", "/a%20b", "/é", "*.png", "/a*b", "/{*}", "/a/{**}", "/{*}/b"),
    *("/@me", "/%40me", "/a;b", "*a", "/admin*"),
)
_HOSTS = ("h", "H", "*.h", "h:*", "h:80", "h*", "*", "example.com")
_source = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "principals": _some(*_PRINCIPALS),
            "notPrincipals": _some(*_PRINCIPALS),
            "namespaces": _some(*_NAMESPACES),
            "notNamespaces": _some(*_NAMESPACES),
            "ipBlocks": _some(*_BLOCKS),
            "notIpBlocks": _some(*_BLOCKS),
            "trustDomains": _some("td", "evil", "*", "e*"),
        },
    ),
    st.fixed_dictionaries({"serviceAccounts": _some(*_ACCOUNTS)}, optional={"ipBlocks": _some(*_BLOCKS)}),
    st.fixed_dictionaries({"notServiceAccounts": _some(*_ACCOUNTS)}),
).filter(bool)


def _contradicts_itself(operation: Manifest) -> bool:
    """Return whether no request matches the operation. The engine sees that, a proxy without HTTP does not."""
    pairs = (("methods", "notMethods"), ("paths", "notPaths"), ("hosts", "notHosts"))
    return any(set(operation.get(field, ())) <= set(operation[other]) for field, other in pairs if other in operation)


_operation = st.fixed_dictionaries(
    {},
    optional={
        "methods": _some("GET", "POST", "HEAD", "*", "G*", "get"),
        "notMethods": _some("GET", "POST"),
        "paths": _some(*_PATHS),
        "notPaths": _some(*_PATHS),
        "hosts": _some(*_HOSTS),
        "notHosts": _some(*_HOSTS),
        "ports": _some("80", "443", "81"),
        "notPorts": _some("80", "443"),
    },
).filter(lambda operation: operation and not _contradicts_itself(operation))


def _condition(key: str, *values: str) -> _Values:
    either = st.fixed_dictionaries({}, optional={"values": _some(*values), "notValues": _some(*values)})
    return either.filter(bool).map(lambda chosen: {"key": key, **chosen})


_when = st.one_of(
    _condition("request.headers[x-a]", "1", "2", "*", "1*", "*2"),
    _condition("source.ip", *_BLOCKS),
    _condition("source.namespace", *_NAMESPACES),
    _condition("source.principal", *_PRINCIPALS),
    _condition("source.serviceAccount", *_ACCOUNTS),
    _condition("destination.port", "80", "443"),
)
_rule = st.fixed_dictionaries(
    {},
    optional={
        "from": st.lists(_source.map(lambda source: {"source": source}), min_size=1, max_size=2),
        "to": st.lists(_operation.map(lambda operation: {"operation": operation}), min_size=1, max_size=2),
        "when": st.lists(_when, min_size=1, max_size=2),
    },
)


@st.composite
def _policy(draw: st.DrawFn, name: str) -> Manifest:
    action = draw(st.sampled_from(["ALLOW", "ALLOW", "DENY", "AUDIT"]))
    rules = draw(st.lists(_rule, min_size=0 if action == "ALLOW" else 1, max_size=3))
    spec: Manifest = {"action": action, "rules": rules}
    if draw(st.booleans()):
        spec["selector"] = {"matchLabels": draw(st.sampled_from([{"app": "web"}, {"app": "db"}, {"tier": "2"}]))}
    namespace = draw(st.sampled_from(["a", "a", "b", "istio-system"]))
    return _resource("AuthorizationPolicy", name, namespace, spec)


@st.composite
def _peers(draw: st.DrawFn) -> Manifest:
    spec: Manifest = {"mtls": {"mode": draw(st.sampled_from(["STRICT", "PERMISSIVE", "UNSET"]))}}
    if draw(st.booleans()):
        spec["selector"] = {"matchLabels": {"app": "web"}}
        spec["portLevelMtls"] = {"80": {"mode": draw(st.sampled_from(["STRICT", "PERMISSIVE", "UNSET"]))}}
    return _resource("PeerAuthentication", "peers", draw(st.sampled_from(["a", "b", "istio-system"])), spec)


def _resource(kind: str, name: str, namespace: str, spec: Manifest) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


@st.composite
def istio(draw: st.DrawFn) -> list[Manifest]:
    policies = [draw(_policy(f"i{number}")) for number in range(draw(st.integers(1, 4)))]
    return [*policies, *([draw(_peers())] if draw(st.integers(0, 3)) == 0 else [])]
