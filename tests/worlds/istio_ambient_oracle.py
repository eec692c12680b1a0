"""An independent implementation of Istio's ambient mode, as in istiod and ztunnel, on plain manifests.

ztunnel gets policies that istiod has translated, and reads no HTTP. A waypoint on the path is an Envoy like a sidecar,
with its own policies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

from tests.worlds.istio_oracle import (
    CLOSED,
    OK,
    Call,
    Manifest,
    Sidecars,
    action_of,
    inside,
    is_dry_run,
    matches_string,
    peer_levels,
    selects,
    set_mode,
    spec_of,
)

# The attributes that ztunnel compares, by field and by key of a condition. All others are HTTP, except trustDomains.
FIELDS = {"principals": "principal", "namespaces": "namespace", "serviceAccounts": "account", "ipBlocks": "address"}
OPERATIONS = {"ports": "port"}
CONDITIONS = {
    "source.ip": "address",
    "source.namespace": "namespace",
    "source.principal": "principal",
    "destination.port": "port",
}
DROPPED = frozenset({"trustDomains", "notTrustDomains"})
WAYPOINT_CLASS = "istio-waypoint"
USE_WAYPOINT = "istio.io/use-waypoint"

Match = list[tuple[str, list[str], list[str]]]  # an attribute, its values, and its negated values
Clause = list[Match]


class Ambient(Sidecars):
    """A mesh with a ztunnel before every pod."""

    def status_of_service(self, service: Manifest, pod: Manifest, call: Call) -> int | None:
        """Return the status of a request to a pod through a Service. None has the meaning of `status`."""
        return self._status(service, "service", pod, call)

    def status(self, pod: Manifest, call: Call) -> int | None:  # type: ignore[override]
        """Return the status of a request to a pod, or None if the address that ztunnel sees is unknown."""
        return self._status(pod, "workload", pod, call)

    def _status(self, target: Manifest, traffic: str, pod: Manifest, call: Call) -> int | None:
        waypoint = self._waypoint(target, traffic)
        if waypoint is None:
            return self._ztunnel(pod, call)
        status = self._at_waypoint(waypoint, target, call)
        if status != OK:
            return status
        if any(self._looks_at_addresses(policy) for policy in self._policies(pod)):
            return None
        namespace, name = waypoint["metadata"]["namespace"], waypoint["metadata"]["name"]
        identity = f"spiffe://{self.config.trust_domains[0]}/ns/{namespace}/sa/{name}"
        return self._ztunnel(pod, replace(call, identity=identity))

    # Waypoints

    def _waypoint(self, target: Manifest, traffic: str) -> Manifest | None:
        """Return the waypoint of a Service or pod: by its own label, or by that of its namespace."""
        home = target["metadata"]["namespace"]
        names = [m for m in self.manifests if m["kind"] == "Namespace" and m["metadata"]["name"] == home]
        labels = [m["metadata"].get("labels", {}) for m in (target, *names)]
        name = next((each[USE_WAYPOINT] for each in labels if USE_WAYPOINT in each), "none")
        for gateway in self.manifests:
            if gateway["kind"] != "Gateway" or (gateway["metadata"]["namespace"], gateway["metadata"]["name"]) != (
                home,
                name,
            ):
                continue
            handled = gateway["metadata"].get("labels", {}).get("istio.io/waypoint-for", "service")
            if handled in (traffic, "all") and name != "none":
                return gateway
        return None

    def _at_waypoint(self, waypoint: Manifest, addressed: Manifest, call: Call) -> int:
        def attached(kind: str) -> list[Manifest]:
            return [p for p in self.of(kind) if self._targets(p, waypoint, addressed)]

        return self.chain(attached("AuthorizationPolicy"), attached("RequestAuthentication"), call)

    def _targets(self, policy: Manifest, waypoint: Manifest, addressed: Manifest) -> bool:
        home = policy["metadata"]["namespace"]
        for target in spec_of(policy).get("targetRefs") or []:
            named = {
                "Gateway": (waypoint["metadata"]["namespace"], waypoint["metadata"]["name"]),
                addressed["kind"]: (addressed["metadata"]["namespace"], addressed["metadata"]["name"]),
                "GatewayClass": (self.config.root, WAYPOINT_CLASS),
            }.get(target["kind"])
            if named == (home, target["name"]):
                return True
        return False

    # ztunnel

    def _ztunnel(self, pod: Manifest, call: Call) -> int:
        policies = self._policies(pod)
        if self._peer_denies(pod, call):
            return CLOSED
        if any(self._matches(p, call) for p in policies if action_of(p) == "DENY"):
            return CLOSED
        allowing = [p for p in policies if action_of(p) == "ALLOW"]
        return OK if not allowing or any(self._matches(p, call) for p in allowing) else CLOSED

    def _policies(self, pod: Manifest) -> list[Manifest]:
        return [p for p in self.of("AuthorizationPolicy") if self._is_sent(p) and self._reaches(p, pod)]

    def _is_sent(self, policy: Manifest) -> bool:
        has_target = bool(spec_of(policy).get("targetRefs"))
        return not is_dry_run(policy) and not has_target and action_of(policy) in ("ALLOW", "DENY")

    def _reaches(self, policy: Manifest, pod: Manifest) -> bool:
        """Return whether a pod gets the policy. An empty selector is valid, but ztunnel sends it to no workload."""
        if policy["metadata"]["namespace"] not in (self.config.root, pod["metadata"]["namespace"]):
            return False
        selector = spec_of(policy).get("selector")
        return selector is None or (bool(selector.get("matchLabels")) and selects(selector, pod))

    def _matches(self, policy: Manifest, call: Call) -> bool:
        """Match ANY rule; in it ALL clauses; in each clause ANY non-empty match; in each match ALL comparisons."""
        namespace = policy["metadata"]["namespace"]
        return any(
            all(any(m and all(_compare(*each, call, namespace) for each in m) for m in clause) for clause in clauses)
            for clauses in self._clauses(policy)
        )

    def _looks_at_addresses(self, policy: Manifest) -> bool:
        compared = (
            each for clauses in self._clauses(policy) for clause in clauses for match in clause for each in match
        )
        return any(what == "address" for what, _, _ in compared)

    def _clauses(self, policy: Manifest) -> Iterator[list[Clause]]:
        for rule in spec_of(policy).get("rules") or []:
            has_http = False
            clauses: list[Clause] = []
            for holder, inner, known in (("to", "operation", OPERATIONS), ("from", "source", FIELDS)):
                written = [entry[inner] for entry in rule.get(holder) or []]
                has_http |= any(
                    _plain(field) not in known and field not in DROPPED for each in written for field in each
                )
                if written:
                    clauses.append([_match(each, known) for each in written])
            for when in rule.get("when") or []:
                has_http |= when["key"] not in CONDITIONS
                clauses.append([_condition(when)])
            if not (has_http and action_of(policy) == "ALLOW"):
                yield clauses

    # PeerAuthentication, which istiod turns into DENY policies

    def _peer_denies(self, pod: Manifest, call: Call) -> bool:
        """Return whether one of the policies that istiod may choose among those of one age denies the call.

        It chooses twice: the policy in force, and the policy that is merged with one for single ports.
        """
        if call.identity is not None:
            return False
        mesh, namespace, workload = peer_levels(self.of("PeerAuthentication"), pod, self.config.root)
        choices = product(mesh, namespace, workload, mesh, namespace)
        return any(self._chosen_deny(*choice, call.port) for choice in choices)

    def _chosen_deny(
        self,
        mesh: Manifest | None,
        namespace: Manifest | None,
        workload: Manifest | None,
        merged_mesh: Manifest | None,
        merged_namespace: Manifest | None,
        port: int,
    ) -> bool:
        mode = set_mode(workload)
        strict = (mode or set_mode(namespace) or set_mode(mesh)) == "STRICT"
        ports = {int(port): each.get("mode", "UNSET") for port, each in _ports(workload).items()}
        exempt = {"PERMISSIVE"} if mode is None else {"PERMISSIVE", "DISABLE"}
        if not (exempt if strict else {"STRICT"}) & set(ports.values()):
            return strict
        converted = _convert(mode, set_mode(merged_mesh), merged_namespace, ports)
        return converted is not None and converted(port)


def _convert(
    mode: str | None, mesh: str | None, namespace: Manifest | None, ports: dict[int, str]
) -> Callable[[int], bool] | None:
    """Return a predicate for ports that deny plaintext, or None if istiod creates no policy.

    Two conditions have istiod's inaccuracies: a STRICT port under a STRICT mesh counts as covered by the mesh, even if
    the workload is permissive. A namespace without a mode counts as not strict.
    """
    inherited = set_mode(namespace)
    mesh_is_in_force = inherited is None and mesh == "STRICT"
    covered = mode == "STRICT" or (mode is None and inherited == "STRICT") or mesh_is_in_force
    closed = {port for port, each in ports.items() if each == "STRICT" and not covered}
    namespace_is_loose = namespace is not None and inherited != "STRICT"
    nothing_is_strict = namespace is None and mesh != "STRICT"
    is_needless = mode in ("PERMISSIVE", "DISABLE") or (mode is None and (namespace_is_loose or nothing_is_strict))
    opened = {port for port, each in ports.items() if each in ("PERMISSIVE", "DISABLE") and not is_needless}
    if mode == "STRICT" and not opened:
        return None
    if not opened and not closed:
        return None
    return lambda port: port in closed or (bool(opened) and port not in opened)


def _ports(workload: Manifest | None) -> dict[str, Manifest]:
    return spec_of(workload).get("portLevelMtls", {}) if workload else {}


def _plain(field: str) -> str:
    return field if not field.startswith("not") else field[3].lower() + field[4:]


def _match(written: Manifest, known: dict[str, str]) -> Match:
    match = []
    for field, what in known.items():
        values, negated = written.get(field) or [], written.get("not" + field[0].upper() + field[1:]) or []
        if values or negated:
            match.append((what, values, negated))
    return match


def _condition(when: Manifest) -> Match:
    if when["key"] not in CONDITIONS:
        return []
    return [(CONDITIONS[when["key"]], when.get("values") or [], when.get("notValues") or [])]


def _compare(what: str, values: list[str], negated: list[str], call: Call, namespace: str) -> bool:
    def fits(value: str) -> bool:
        return _fits(what, value, call, namespace)

    return (not values or any(map(fits, values))) and not any(map(fits, negated))


def _fits(what: str, value: str, call: Call, namespace: str) -> bool:
    segments = call.identity.removeprefix("spiffe://").split("/") if call.identity else []
    match what:
        case "port":
            return call.port == int(value)
        case "address":
            return inside(value, call.address)
        case "principal":
            return call.identity is not None and matches_string(value, "/".join(segments))
        case "namespace":
            return matches_string(value, segments[2] if segments else "")
        case _:
            account = value if "/" in value else f"{namespace}/{value}"
            return bool(segments) and account == f"{segments[2]}/{segments[4]}"
