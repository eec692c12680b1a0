"""Conversions from Istio to GEP-3779 and Linkerd, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.settings import Settings
from tests.convert.conversions import ALL_ASSUMED, Manifest, Outcome, converted
from tests.convert.crowds import pod

V1ALPHA2 = "authorizationpolicy-v1alpha2"


def policy(name: str = "p", action: str = "ALLOW", *rules: Manifest, **more: Any) -> Manifest:
    spec: Manifest = {"action": action, "rules": list(rules)}
    if "labels" in more:
        spec["selector"] = {"matchLabels": more.pop("labels")}
    metadata = {"name": name, "namespace": more.pop("namespace", "a"), "annotations": more.pop("annotations", {})}
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": metadata,
        "spec": {**spec, **more},
    }


def source(**fields: list[str]) -> Manifest:
    return {"from": [{"source": fields}]}


def operation(**fields: list[str]) -> Manifest:
    return {"to": [{"operation": fields}]}


def from_istio(*manifests: Manifest, to: str = V1ALPHA2, assumed: bool = False, **settings: str) -> Outcome:
    chosen = Settings.from_mapping({"trustDomain": "td", **settings})
    return converted(list(manifests), to, chosen, ALL_ASSUMED if assumed else None)


def rules(outcome: Outcome) -> list[Manifest]:
    return [rule for manifest in outcome.written for rule in manifest["spec"]["rules"]]


def names(manifests: list[Manifest]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


WEB = pod("web", {"app": "web"}, [80])
X = {"authorizationSource": {"serviceAccounts": ["a/x"]}}
A = {"authorizationSource": {"serviceAccounts": ["a/*"]}}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"principals": ["td/ns/a/sa/x"]}, X),
        ({"principals": ["cluster.local/ns/a/sa/x"]}, X),  # it is the trust domain of the mesh
        ({"principals": ["evil/ns/a/sa/x"]}, {"authorizationSource": {"identities": ["spiffe://evil/ns/a/sa/x"]}}),
        ({"principals": ["td/ns/a/sa/x", "td/ns/b/sa/y"], "notNamespaces": ["b"]}, X),
        ({"principals": ["td/ns/a/sa/x"], "trustDomains": ["td"]}, X),
    ],
)
@pytest.mark.parametrize("action", ["ALLOW", "DENY"])
def test_callers_that_can_be_named(action: str, written: dict[str, list[str]], expected: Manifest) -> None:
    outcome = from_istio(policy("p", action, source(**written)), denyOnly="allow")
    assert (rules(outcome), outcome.losses) == ([expected], [])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"namespaces": ["a"]}, A),
        ({"serviceAccounts": ["a/x"]}, X),
        ({"serviceAccounts": ["x"]}, X),  # of the namespace of the policy
        ({"principals": ["td/ns/a/sa/*"]}, A),
    ],
)
def test_callers_that_istio_matches_by_patterns(written: dict[str, list[str]], expected: Manifest) -> None:
    narrowed = from_istio(policy("p", "ALLOW", source(**written)))
    assert (rules(narrowed), narrowed.losses) == ([expected], ["EG7506"])
    stays = from_istio(policy("p", "DENY", source(**written)))
    assert (stays.written, names(stays.kept), stays.losses) == ([], ["p"], ["EG7506"])
    for action in ("ALLOW", "DENY"):
        assumed = from_istio(policy("p", action, source(**written)), assumed=True, denyOnly="allow")
        assert (rules(assumed), assumed.losses) == ([expected], [])


@pytest.mark.parametrize("written", [{"principals": ["*"]}, {"notNamespaces": ["b"]}, {"principals": ["*/sa/x"]}])
def test_of_other_patterns_the_accounts_stay_that_are_known(written: dict[str, list[str]]) -> None:
    outcome = from_istio(WEB, policy("p", "ALLOW", source(**written)))
    assert (rules(outcome), outcome.losses) == ([X], ["EG7506"])


@pytest.mark.parametrize(
    "rule",
    [
        source(ipBlocks=["10.0.0.0/8"]),
        source(requestPrincipals=["*"]),
        operation(hosts=["h"]),
        operation(notPaths=["/a"]),
        operation(paths=["/a/{*}"]),
        operation(notPorts=["80"]),
        {"when": [{"key": "request.headers[x]", "values": ["1"]}]},
        {"when": [{"key": "request.auth.claims[x]", "values": ["1"]}]},
        {"when": [{"key": "connection.sni", "notValues": ["h"]}]},
    ],
)
def test_what_has_no_words_is_left_out_of_an_allow_and_keeps_a_deny(rule: Manifest) -> None:
    allowing = from_istio(policy("p", "ALLOW", rule, source(principals=["td/ns/a/sa/x"])))
    assert (rules(allowing), allowing.losses, allowing.kept) == ([X], ["EG7505"], [])
    for stays in (from_istio(policy("p", "DENY", rule)), from_istio(policy("p", "ALLOW", rule))):
        assert (stays.written, names(stays.kept), set(stays.losses)) == ([], ["p"], {"EG7505"})


def test_an_allow_that_stays_keeps_those_that_it_meets() -> None:
    web = policy("web", "ALLOW", source(principals=["td/ns/a/sa/x"]), labels={"app": "web"})
    db = policy("db", "ALLOW", source(principals=["td/ns/a/sa/x"]), labels={"app": "db"})
    outcome = from_istio(web, db, policy("p", "ALLOW", operation(hosts=["h"]), labels={"app": "web", "tier": "front"}))
    assert names(outcome.written) == ["db"]
    assert names(outcome.kept) == ["web", "p"]
    assert outcome.losses.count("EG7507") == 1


def test_a_deny_leaves_open_what_nothing_allows() -> None:
    deny = policy("deny", "DENY", source(principals=["td/ns/a/sa/x"]))
    allow = policy("web", "ALLOW", operation(ports=["80"]), labels={"app": "web", "tier": "front"})
    outcome = from_istio(deny, allow)
    assert names(outcome.written) == ["deny", "deny-allow-everything", "web"]
    rest = outcome.written[1]["spec"]
    assert (rest["action"], rest["rules"]) == ("ALLOW", [{}])
    expressions = [ref["selector"]["matchExpressions"] for ref in rest["targetRefs"]]
    assert expressions == [
        [{"key": "app", "operator": "NotIn", "values": ["web"]}],
        [{"key": "tier", "operator": "NotIn", "values": ["front"]}],
    ]
    assert names(from_istio(deny, allow, denyOnly="allow").written) == ["deny", "web"]


def test_policies_that_meet_are_of_one_level() -> None:
    outcome = from_istio(
        policy("deny", "DENY", source(principals=["td/ns/a/sa/x"])),
        policy("web", "ALLOW", operation(methods=["GET"]), labels={"app": "web"}),
        denyOnly="allow",
    )
    assert [manifest["spec"].get("enforcementLevel") for manifest in outcome.written] == ["APPLICATION"] * 2


def test_a_policy_of_the_root_namespace_is_for_every_namespace_that_is_known() -> None:
    outcome = from_istio(
        WEB, pod("db", {}, []) | {"metadata": {"name": "db", "namespace": "b"}}, policy(namespace="istio-system")
    )
    assert [manifest["metadata"]["namespace"] for manifest in outcome.written] == ["a", "b", "istio-system"]
    assert outcome.losses == ["EG7504"]


def test_a_dry_run_only_observes() -> None:
    outcome = from_istio(policy("p", "ALLOW", annotations={"istio.io/dry-run": "true"}))
    (written,) = outcome.written
    assert written["metadata"]["annotations"]["eastgate.dev/mode"] == "audit"


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        (policy("p", "AUDIT", {}), "EG7502"),
        (policy("p", "CUSTOM", {}, provider={"name": "x"}), "EG7502"),
        (policy("p", "DENY", {}, targetRefs=[{"kind": "Service", "group": "", "name": "s"}]), "EG7503"),
        ({**policy("p"), "kind": "PeerAuthentication", "spec": {"mtls": {"mode": "STRICT"}}}, "EG7501"),
        ({**policy("p"), "kind": "RequestAuthentication", "spec": {}}, "EG7501"),
    ],
)
def test_what_stays_with_istio(manifest: Manifest, code: str) -> None:
    outcome = from_istio(manifest)
    assert (outcome.written, names(outcome.kept), outcome.losses) == ([], ["p"], [code])


def test_a_policy_that_a_gateway_has_stays() -> None:
    gateway: Manifest = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "edge", "namespace": "a"},
        "spec": {"gatewayClassName": "istio", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    }
    everything, some = policy("all", "ALLOW", {}), policy("some", "ALLOW", {}, labels={"app": "web"})
    assert from_istio(gateway, everything).losses == ["EG7503"]
    assert from_istio(gateway, some).losses == []


def test_a_policy_on_ports_without_identities_stays() -> None:
    peer = {**policy("m"), "kind": "PeerAuthentication", "spec": {"mtls": {"mode": "DISABLE"}}}
    outcome = from_istio(peer, policy("p", "ALLOW", source(principals=["td/ns/a/sa/x"])))
    assert (outcome.written, set(outcome.losses)) == ([], {"EG7501", "EG7503"})


def test_a_policy_beside_those_of_gep_3779_stays() -> None:
    there: Manifest = {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "g", "namespace": "a"},
        "spec": {"targetRefs": [{"kind": "Pod", "selector": {}}], "action": "ALLOW", "rules": [{}]},
    }
    outcome = from_istio(there, policy("p", "ALLOW", {}))
    assert (names(outcome.written), names(outcome.kept), outcome.losses) == (["g"], ["p"], ["EG7507"])


def test_a_rule_that_ztunnel_drops_is_left_out() -> None:
    labels = {"istio.io/dataplane-mode": "ambient"}
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": labels}}
    allowing = policy("p", "ALLOW", operation(methods=["GET"]), operation(ports=["80"]))
    outcome = from_istio(namespace, allowing)
    assert (rules(outcome), outcome.losses) == ([{"networkAttributes": {"ports": [80]}}], ["EG7508"])
    denying = from_istio(namespace, policy("p", "DENY", operation(methods=["GET"])), denyOnly="allow")
    assert (rules(denying), denying.losses) == ([{"applicationAttributes": {"methods": ["GET"]}}], ["EG7508"])


def test_linkerd_has_no_deny() -> None:
    outcome = from_istio(
        WEB,
        policy("deny", "DENY", source(principals=["td/ns/a/sa/y"])),
        policy("web", "ALLOW", source(principals=["td/ns/a/sa/x"]) | operation(ports=["80"]), labels={"app": "web"}),
        to="linkerd",
        linkerdDefaultPolicy="deny",
    )
    assert [manifest["kind"] for manifest in outcome.written] == [
        "Server",
        "MeshTLSAuthentication",
        "AuthorizationPolicy",
    ]
    assert (names(outcome.kept), outcome.losses) == (["deny"], ["EG7003"])
