"""Conversions are proven for all requests: equal if nothing is lost, and never wider if something is."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from eastgate import Settings
from eastgate.cli import main
from eastgate.convert import Options, convert, gep_writing
from eastgate.convert.model import metadata_of
from eastgate.convert.verifying import can_verify, verify
from eastgate.dialects import reads
from eastgate.reach.comparison import AuthorityComparison, DoubtReason
from eastgate.reading.manifests import read_text
from tests.convert.conversions import ALL_ASSUMED, Manifest, is_policy
from tests.convert.istio_generate import meshes
from tests.convert.test_gep_generated import GEP, clusters
from tests.convert.test_linkerd_generated import with_ports
from tests.worlds import access_generate, linkerd_generate
from tests.worlds.linkerd_oracle import ALL_POLICIES

# The base protocol of v0alpha0 has this method and that of v1alpha1 does not. An assumption can exclude it.
_DISCOVERY = "server/discover"

GOLDENS = Path(__file__).parent / "goldens"


def check(manifests: list[Manifest], to: str, chosen: Settings, options: Options | None = None) -> AuthorityComparison:
    """Convert, and assert that the conversion is correct for every request."""
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests})
    reading = read_text("generated.json", text, positioned=reads)
    read, conversion = convert(reading, to, chosen, options)
    assert read.reporter.errors == []
    assert can_verify(conversion)
    comparison = verify(read, reading.documents, conversion, chosen, options)
    losses = [loss.code.id for loss in conversion.losses]
    event("lossless" if not losses else "with losses")
    event("equal" if comparison.equal else "proven" if comparison.proven else "not proven")
    for doubt in comparison.doubts:  # no question can ask about traffic that is not HTTP
        assert doubt.reason is DoubtReason.NOT_CONFIRMED, (doubt.reason, doubt.subject)
        assert doubt.difference is not None
        assert losses, ("other", doubt.difference)
        # There is no known relation between an expression for paths, as in routes of Linkerd, and a prefix.
        by_expression = to == "linkerd" and "EG7107" in losses
        assert by_expression or not doubt.difference.new.allowed, ("wider", doubt.difference)
    for difference in comparison.differences:
        assert difference.confirmation is not None
        words = (difference.confirmation.question.arguments, losses)
        assert losses, ("other", *words)
        assert not difference.new.allowed, ("wider", *words)
    return comparison


@pytest.mark.parametrize("to", GEP)
@settings(max_examples=40, deadline=None)
@given(situation=clusters)
def test_between_the_forms_of_gep_3779(to: str, situation: tuple[list[Manifest], Settings]) -> None:
    check(situation[0], to, situation[1])


@pytest.mark.parametrize("to", ["accesspolicy-v0alpha0", "accesspolicy-v1alpha1"])
@settings(max_examples=40, deadline=None)
@given(policies=access_generate.policies, unlisted=st.sampled_from(["deny", "proceed"]))
def test_between_the_forms_of_access_policies(to: str, policies: list[Manifest], unlisted: str) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    check([*access_generate.FIXED, *policies], to, chosen)


@settings(max_examples=60, deadline=None)
@given(with_ports())
def test_from_gep_3779_to_linkerd(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    check([m for m in manifests if m["kind"] != "ClusterAuthorizationPolicy"], "linkerd", chosen)


@pytest.mark.parametrize("to", GEP)
@settings(max_examples=40, deadline=None)
@given(
    pods=linkerd_generate.pods,
    namespace=linkerd_generate.namespace,
    resources=linkerd_generate.resources,
    default=st.sampled_from([*ALL_POLICIES, "deny"]),
)
def test_from_linkerd_to_gep_3779(
    to: str, pods: list[Manifest], namespace: Manifest, resources: list[Manifest], default: str
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "linkerdDefaultPolicy": default})
    check([namespace, *pods, *resources], to, chosen)


@pytest.mark.parametrize("to", [*GEP, "linkerd"])
@settings(max_examples=50, deadline=None)
@given(mesh=meshes(), assumed=st.sampled_from([Options(), ALL_ASSUMED]))
def test_from_istio(to: str, mesh: tuple[list[Manifest], Settings], assumed: Options) -> None:
    check(mesh[0], to, mesh[1], assumed)


@pytest.mark.parametrize("assumed", [Options(), ALL_ASSUMED], ids=["nothing assumed", "all assumed"])
@settings(max_examples=60, deadline=None)
@given(situation=clusters)
def test_from_gep_3779_to_istio(assumed: Options, situation: tuple[list[Manifest], Settings]) -> None:
    check(situation[0], "istio", situation[1], assumed)


def _pod(name: str, **container: Any) -> Manifest:
    metadata = {"name": name, "namespace": "n", "labels": {"app": name}}
    ports = [{"containerPort": 80, "name": "http"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "ports": ports, **container}]},
    }


def _server(name: str, annotations: dict[str, str], **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": "n", "annotations": annotations}
    kind = {"apiVersion": "policy.linkerd.io/v1beta3", "kind": "Server"}
    return {**kind, "metadata": metadata, "spec": {"port": 80, **spec}}


# The probe route of `two` stays in Linkerd because its Server only observes. Both sides must compare its path alike.
_OBSERVED_PROBE = {
    "pods": [_pod("one"), _pod("two", livenessProbe={"httpGet": {"path": "/a", "port": 80}})],
    "namespace": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
    "resources": [
        _server("observed", {"eastgate.dev/mode": "audit"}, podSelector={}),
        _server("converted", {}, podSelector={"matchLabels": {"app": "one"}}, accessPolicy="audit"),
    ],
    "default": "all-authenticated",
}


@settings(max_examples=60, deadline=None)
@example(**_OBSERVED_PROBE)
@given(
    pods=linkerd_generate.pods,
    namespace=linkerd_generate.namespace,
    resources=linkerd_generate.resources,
    default=st.sampled_from([*ALL_POLICIES, "deny"]),
)
def test_from_linkerd_to_istio(
    pods: list[Manifest], namespace: Manifest, resources: list[Manifest], default: str
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "linkerdDefaultPolicy": default})
    check([namespace, *pods, *resources], "istio", chosen)


# The goldens, with a workload for each selector of their policies


_NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "beside"}}


def _selected(manifest: Any) -> Iterator[dict[str, str]]:
    if isinstance(manifest, dict):
        if isinstance(manifest.get("matchLabels"), dict):
            yield manifest["matchLabels"]
        for value in manifest.values():
            yield from _selected(value)
    elif isinstance(manifest, list):
        for value in manifest:
            yield from _selected(value)


def _pods(manifests: list[Manifest]) -> list[Manifest]:
    declared = [m for m in manifests if m["kind"] == "Pod"]
    pods: dict[tuple[str, str], Manifest] = {}
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace", "default")
        for labels in [{"only": "this"}, *_selected(manifest)] if is_policy(manifest) and not declared else ():
            key = namespace, json.dumps(labels)
            pods.setdefault(
                key,
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"pod-{len(pods)}", "namespace": namespace, "labels": labels},
                    "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 8080}]}]},
                },
            )
    return list(pods.values())


@pytest.mark.parametrize("name", sorted(path.name.removesuffix("-in.yaml") for path in GOLDENS.glob("*-in.yaml")))
def test_goldens(name: str, tmp_path: Path) -> None:
    source = GOLDENS / f"{name}-in.yaml"
    text = source.read_text(encoding="utf-8")
    words = shlex.split(text.splitlines()[0].removeprefix("# "))
    manifests = list(yaml.safe_load_all(text))
    backends = {
        (m["metadata"].get("namespace", "default"), ref["name"], ref.get("group", ""), ref["kind"])
        for m in manifests
        if m["kind"] == "XAccessPolicy"
        for ref in m["spec"]["targetRefs"]
    }
    targets = [_target(*reference) for reference in sorted(backends)]
    beside = tmp_path / "beside.yaml"
    beside.write_text(yaml.safe_dump_all([_NAMESPACE, *_pods(manifests), *targets]), encoding="utf-8")
    arguments = ["convert", *words, "-f", str(source), "-f", str(beside), "--verify", "-o", "json"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code != 2, result.stdout
    verification = json.loads(result.stdout)["verification"]
    if not json.loads(result.stdout)["converted"]:
        assert (verification, result.exit_code) == (None, 1)
        return
    wider = [change for change in verification["changes"] if change["now"] == "allow"]
    assumed = [change for change in wider if _DISCOVERY in change["example"] and "mcp-base-protocol" in words]
    assert wider == assumed
    kinds = {manifest["kind"] for manifest in json.loads(result.stdout)["converted"]}
    if {"AuthConfig", "AuthorizationPolicy"} <= kinds:
        assert result.exit_code in (1, 3)  # no manifest shows that the provider of the mesh reads the AuthConfigs
        return
    assert verification["compared"]
    assert verification["proven"], verification["unproven"]
    expected = 4 if wider else 1 if json.loads(result.stdout)["losses"] else 0
    assert result.exit_code == expected, verification["changes"]
    assert verification["equal"] or json.loads(result.stdout)["losses"]


def _target(namespace: str, name: str, group: str, kind: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    if kind == "Gateway":
        listeners = [{"name": "http", "port": 80, "protocol": "HTTP"}]
        spec: Manifest = {"gatewayClassName": "any", "listeners": listeners}
        return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}
    spec = {"mcp": {"serviceName": "s", "port": 80}}
    return {"apiVersion": f"{group}/v0alpha0", "kind": kind, "metadata": metadata, "spec": spec}


def test_a_conversion_that_changes_a_verdict_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifests = tmp_path / "shop.yaml"
    manifests.write_text(_SHOP, encoding="utf-8")
    arguments = ["convert", "--to", "xauthorizationpolicy", "-f", str(manifests), "--verify"]
    right = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert right.exit_code == 0
    assert right.stderr.endswith("verified\n")

    def elsewhere(*given: Any, **named: Any) -> Any:
        return {**metadata_of(*given, **named), "namespace": "elsewhere"}

    monkeypatch.setattr(gep_writing, "metadata_of", elsewhere)
    wrong = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert wrong.exit_code == 4
    assert "now allowed: " in wrong.stderr
    assert wrong.stderr.endswith("not verified\n")


_SHOP = """
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: cart, namespace: shop}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: cart}}}]
  action: ALLOW
  rules:
  - authorizationSource: {serviceAccounts: [web]}
    networkAttributes: {ports: [8080]}
"""


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: c, image: c}]}\n"
NETWORK_POLICY = """---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec: {podSelector: {}}
"""
ISTIO_POLICY = """---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec: {rules: [{from: [{source: {namespaces: [front]}}]}]}
"""


@pytest.mark.parametrize(
    ("policies", "status"), [("", 3), (NETWORK_POLICY, 1), (ISTIO_POLICY, 3)], ids=["none", "foreign", "passed on"]
)
def test_a_conversion_of_nothing_is_not_verified(tmp_path: Path, policies: str, status: int) -> None:
    (tmp_path / "app.yaml").write_text(POD + policies, encoding="utf-8")
    result = CliRunner().invoke(main, ["convert", "--to", "istio", "-f", str(tmp_path), "--verify"])
    assert result.exit_code == status
    assert result.stderr.endswith("nothing was converted, so that there is nothing to verify\n")
    assert "verified" not in result.output


ASSUMED = ("istio-identities", "istio-trust-domain")


@pytest.mark.parametrize("given", [(), ASSUMED[:1], ASSUMED[1:], ASSUMED])
def test_advice_names_no_assumption_that_was_given(tmp_path: Path, given: tuple[str, ...]) -> None:
    (tmp_path / "app.yaml").write_text(POD + ISTIO_POLICY.replace("[front]", '["fr*"]'), encoding="utf-8")
    options = [word for name in given for word in ("--assume", name)]
    to = ["convert", "--to", "authorizationpolicy-v1alpha2", "-f", str(tmp_path)]
    advice = CliRunner().invoke(main, [*to, *options]).stderr
    assert [name for name in ASSUMED if f"--assume {name}" in advice] == [name for name in ASSUMED if name not in given]


def test_advice_names_no_setting_that_was_given(tmp_path: Path) -> None:
    annotated = POD.replace(
        "shop}", "shop, annotations: {config.linkerd.io/default-inbound-policy: all-authenticated}}"
    )
    policy = """---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec: {targetRefs: [{kind: Pod, selector: {}}], action: ALLOW, rules: [{}]}
"""
    (tmp_path / "app.yaml").write_text(annotated + policy, encoding="utf-8")
    to = ["convert", "--to", "linkerd", "-f", str(tmp_path)]
    assert "--set linkerdDefaultPolicy=deny" in CliRunner().invoke(main, to).stderr
    advice = CliRunner().invoke(main, [*to, "--set", "linkerdDefaultPolicy=deny"]).stderr
    assert "default-inbound-policy: deny" in advice
    assert "--set" not in advice
