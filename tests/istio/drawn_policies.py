"""Generated sets of valid Istio policies that often meet the requests of `drawn_requests`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random

from tests.istio.tables import Manifest

ROOT, HOME, ELSEWHERE = "istio-system", "app", "b"
ISSUERS = ("https://issuer.example", "https://other.example")
PROVIDERS = {"allowing": "allow", "denying": "deny", "erring": "error"}
ADDRESSES = ("10.0.0.1", "10.0.1.1", "192.0.2.1", "203.0.113.9")

_BLOCKS = ("10.0.0.0/24", "10.0.0.9/24", "10.0.0.0/8", "192.0.2.1", "203.0.113.0/24", "2001:db8::/32")
_PRINCIPALS = (
    *("cluster.local/ns/a/sa/x", "cluster.local/ns/app/sa/web", "td2/ns/a/sa/x", "*", "*/sa/x", "*/ns/a/sa/x"),
    *("cluster.local/ns/a/*", "td*", "cluster.local/*/sa/x", "cluster.local/ns/a/sa/X", "*x", "*.local/ns/a/sa/x"),
)
_REQUEST_PRINCIPALS = (
    *(f"{ISSUERS[0]}/alice", f"{ISSUERS[0]}/*", "*", "*/alice", "*alice", "https*", f"{ISSUERS[1]}/b*"),
    *("https://issuer.example", "*.example/alice", "alice"),
)
SOURCE_FIELDS: Mapping[str, Sequence[str]] = {
    "principals": _PRINCIPALS,
    "requestPrincipals": _REQUEST_PRINCIPALS,
    "namespaces": ("a", "b", "ab", "*", "a*", "*b", "a*b", "*a*"),
    "serviceAccounts": ("a/x", "b/x", "x", "app/web"),
    "trustDomains": ("cluster.local", "td2", "*", "*.local", "td*"),
    "ipBlocks": _BLOCKS,
    "remoteIpBlocks": _BLOCKS,
}
OPERATION_FIELDS: Mapping[str, Sequence[str]] = {
    "hosts": ("web.example", "*.example", "web*", "*", "WEB.Example", "web.example:8080", "w*e"),
    "ports": ("8080", "9090", "7000"),
    "methods": ("GET", "POST", "*", "G*", "*T", "get"),
    "paths": ("/a", "/a/*", "*/b", "*", "/a/{*}/c", "/a/{**}", "/{**}", "/*/b", "/a*b", "/A", "/a%2Fb", "*.txt"),
}
CONDITIONS: Mapping[str, Sequence[str]] = {
    "request.headers[x-key]": ("v", "v*", "*w", "*", "V"),
    "source.ip": _BLOCKS,
    "remote.ip": _BLOCKS,
    "source.namespace": SOURCE_FIELDS["namespaces"],
    "source.serviceAccount": SOURCE_FIELDS["serviceAccounts"],
    "source.principal": _PRINCIPALS,
    "source.trustDomain": SOURCE_FIELDS["trustDomains"],
    "request.auth.principal": _REQUEST_PRINCIPALS,
    "request.auth.audiences": ("shop", "s*", "*", "other"),
    "request.auth.presenter": ("app.example", "*.example"),
    "request.auth.claims[groups]": ("admins", "a*", "*ers", "*"),
    "request.auth.claims[realm][role]": ("reader", "*"),
    "request.auth.claims[scope]": ("read", "write", "read write"),
    "destination.ip": ("10.100.0.0/16", "10.200.0.0/16", "10.0.0.0/8", "192.0.2.0/24"),
    "destination.port": OPERATION_FIELDS["ports"],
    "connection.sni": ("web.example", "*.example", "*"),
}
_LOCATIONS: Sequence[Manifest] = (
    *({}, {}, {}),
    {"fromHeaders": [{"name": "x-token"}]},
    {"fromHeaders": [{"name": "authorization", "prefix": "Token "}]},
    {"fromParams": ["token"]},
    {"fromCookies": ["token"]},
)
_MODES = ("STRICT", "PERMISSIVE", "UNSET", "DISABLE")
_IDENTITY_FIELDS = ("principals", "requestPrincipals", "namespaces", "serviceAccounts", "trustDomains")
_IDENTITY_KEYS = ("source.namespace", "source.serviceAccount", "source.principal", "source.trustDomain", "request.auth")


class PolicyDraw:
    """Draws from a seeded generator: the same seed gives the same policies. Some conditions may be left out."""

    def __init__(self, random: Random, *, without: Collection[str] = ()) -> None:
        self._random = random
        self._locations = {issuer: random.choice(_LOCATIONS) for issuer in ISSUERS}
        self._keys = [key for key in CONDITIONS if key not in without]
        # Without mTLS there is no server name, even if a question has one.
        self._modes = _MODES if "connection.sni" in without else _MODES[:-1]

    def policies(self) -> list[Manifest]:
        """Draw one to four AuthorizationPolicies, and often other kinds."""
        drawn = [self._authorization(f"policy-{number}") for number in range(self._random.choice((1, 1, 2, 2, 3, 4)))]
        drawn += [self._tokens(f"tokens-{number}") for number in range(self._random.choice((0, 1, 1, 2)))]
        return [*drawn, *self._dated_peers(self._random.choice((0, 0, 1, 2)))]

    def targeting(self, policy: Manifest, target: Manifest) -> Manifest:
        """Return a policy, sometimes with a target instead of a selector."""
        if policy["kind"] == "PeerAuthentication" or self._random.random() < 0.4:
            return policy
        spec = {name: value for name, value in policy["spec"].items() if name != "selector"}
        metadata = {**policy["metadata"], "namespace": HOME}
        return {**policy, "metadata": metadata, "spec": {**spec, "targetRefs": [target]}}

    def _authorization(self, name: str) -> Manifest:
        action = self._random.choices(("ALLOW", "DENY", "CUSTOM", "AUDIT"), (8, 6, 2, 1))[0]
        spec: Manifest = self._selector()
        if action != "ALLOW" or self._random.random() < 0.5:
            spec["action"] = action
        if action == "CUSTOM":
            spec["provider"] = {"name": self._random.choice((*PROVIDERS, "allowing", "unknown"))}
        rules = self._random.choice((1, 1, 2, 3)) if action != "ALLOW" or self._random.random() < 0.95 else 0
        spec["rules"] = [self._rule(is_custom=action == "CUSTOM") for _ in range(rules)]
        policy = self._manifest("AuthorizationPolicy", name, spec)
        if action in ("ALLOW", "DENY") and self._random.random() < 0.07:
            policy["metadata"]["annotations"] = {"istio.io/dry-run": "true"}
        return policy

    def _rule(self, *, is_custom: bool) -> Manifest:
        rule: Manifest = {}
        if self._random.random() < 0.6:
            rule["from"] = [
                {"source": self._source(is_custom=is_custom)} for _ in range(self._random.choice((1, 1, 2)))
            ]
        if self._random.random() < 0.6:
            operations = range(self._some())
            rule["to"] = [{"operation": self._fields(OPERATION_FIELDS)} for _ in operations]
        if self._random.random() < 0.35:
            keys = [key for key in self._keys if not (is_custom and key.startswith(_IDENTITY_KEYS))]
            rule["when"] = [self._condition(self._random.choice(keys)) for _ in range(self._random.choice((1, 1, 2)))]
        return rule

    def _some(self) -> int:
        """Draw the number of sources or operations. Zero, which matches everything, is rare."""
        return self._random.choices((0, 1, 2), (1, 30, 15))[0]

    def _source(self, *, is_custom: bool) -> Manifest:
        """Draw a source. Accounts exclude other names of callers, and CUSTOM excludes all of these."""
        left_out = (
            _IDENTITY_FIELDS if is_custom else self._random.choice((("serviceAccounts",), ("principals", "namespaces")))
        )
        return self._fields({name: values for name, values in SOURCE_FIELDS.items() if name not in left_out})

    def _fields(self, pools: Mapping[str, Sequence[str]]) -> Manifest:
        fields: Manifest = {}
        for name in self._random.sample(list(pools), self._random.choice((1, 1, 2))):
            negative = f"not{name[0].upper()}{name[1:]}"
            form = self._random.random()
            if form < 0.75:
                fields[name] = self._values(pools[name])
            if form > 0.65:
                fields[negative] = self._values(pools[name])
        return fields

    def _condition(self, key: str) -> Manifest:
        condition: Manifest = {"key": key}
        form = self._random.random()
        if form < 0.75:
            condition["values"] = self._values(CONDITIONS[key])
        if form > 0.65:
            condition["notValues"] = self._values(CONDITIONS[key])
        return condition

    def _values(self, pool: Sequence[str]) -> list[str]:
        return self._random.sample(pool, self._random.choice((1, 1, 2)))

    def _tokens(self, name: str) -> Manifest:
        issuers = self._random.sample(ISSUERS, self._random.choice((1, 2)))
        return self._manifest(
            "RequestAuthentication", name, {**self._selector(), "jwtRules": [*map(self._jwt_rule, issuers)]}
        )

    def _jwt_rule(self, issuer: str) -> Manifest:
        rule: Manifest = {"issuer": issuer, "jwksUri": f"{issuer}/keys"}
        if self._random.random() < 0.3:
            rule["audiences"] = self._random.choice((["shop"], ["other"], ["shop", "other"]))
        return rule | self._locations[issuer]

    def _dated_peers(self, count: int) -> Iterator[Manifest]:
        """Draw PeerAuthentications of different ages. Of two with one age, a ztunnel may use either."""
        ages = self._random.sample(range(1, 10), count)
        for number, age in enumerate(ages):
            policy = self._peers(f"peers-{number}")
            policy["metadata"]["creationTimestamp"] = f"2024-01-0{age}T00:00:00Z"
            yield policy

    def _peers(self, name: str) -> Manifest:
        spec: Manifest = {**self._selector(), "mtls": {"mode": self._random.choice(self._modes)}}
        if "selector" in spec and self._random.random() < 0.5:
            port = self._random.choice(OPERATION_FIELDS["ports"])
            spec["portLevelMtls"] = {port: {"mode": self._random.choice(self._modes)}}
        return self._manifest("PeerAuthentication", name, spec)

    def _selector(self) -> Manifest:
        labels = self._random.choice((None, None, {"app": "web"}, {"app": "web"}, {"app": "db"}, {"tier": "back"}))
        return {"selector": {"matchLabels": labels}} if labels is not None else {}

    def _manifest(self, kind: str, name: str, spec: Manifest) -> Manifest:
        namespace = self._random.choices((HOME, ROOT, ELSEWHERE), (8, 3, 1))[0]
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": "security.istio.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
