"""Every kind of the catalogue is reported, and none stops the reading of a folder."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from eastgate import dialects
from eastgate.cluster.unread import KINDS, EnforcementPlane, TargetField, UnreadEffect, UnreadKind
from eastgate.cluster.unread.model import ISOLATING
from tests.cluster.unread.conftest import BANK_TO_CART, TO_GATEWAY, WEB_TO_CART, Run

SPECS = {
    TargetField.POD_SELECTOR: "{podSelector: {}}",
    TargetField.ENDPOINT_SELECTOR: "{endpointSelector: {}}",
    TargetField.SUBJECT: "{subject: {namespaces: {}}}",
    TargetField.CALICO: "{selector: all()}",
    TargetField.USER_NETWORK: "{layer2: {role: Primary}, namespaceSelector: {matchLabels: {"
    "kubernetes.io/metadata.name: shop}}, network: {layer2: {role: Primary}}}",
    TargetField.MEMBERS: "{members: [shop]}",
    TargetField.SELECTOR: "{}",
    TargetField.WORKLOAD_SELECTOR: "{}",
    TargetField.TARGET_REFS: "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: front}]}",
}
ACTIVE = [kind for kind in KINDS if kind.effect is not UnreadEffect.NONE]


def written(kind: UnreadKind, spec: str | None = None) -> str:
    return (
        f"apiVersion: {kind.group}/v1\nkind: {kind.kind}\n"
        f"metadata: {{name: one, namespace: shop}}\nspec: {spec or SPECS.get(kind.target_field, '{}')}\n"
    )


def question(kind: UnreadKind) -> tuple[str, ...]:
    if kind.target_field in ISOLATING:
        return BANK_TO_CART  # members of one group reach each other
    return TO_GATEWAY if kind.plane is EnforcementPlane.GATEWAY else WEB_TO_CART


def named(kind: UnreadKind) -> str:
    return f"{kind.group}-{kind.kind}"


@pytest.mark.parametrize("kind", ACTIVE, ids=named)
def test_an_allow_beside_it_is_never_a_plain_one(kind: UnreadKind, run: Run) -> None:
    result = run(written(kind), "check", *question(kind), "-o", "json")
    data = json.loads(result.stdout)
    if kind.target_field is TargetField.UNKNOWN:
        assert result.exit_code == 2
        assert data["diagnostics"][0]["code"] == "EG0121"
    else:
        assert result.exit_code == 3
        assert (data["verdict"], data["complete"]) == ("allow", False)
        [met] = data["unconsidered"]
        assert (met["group"], met["kind"], met["can"]) == (kind.group, kind.kind, kind.effect)
        assert (met["file"], met["line"]) == ("more.yaml", 1)


@pytest.mark.parametrize("kind", [kind for kind in ACTIVE if kind.target_field in SPECS], ids=named)
def test_a_target_that_cannot_be_read_gives_no_answer_in_its_namespace(kind: UnreadKind, run: Run) -> None:
    if kind.kind == "ServiceMeshMember":
        return  # its namespace is its only target
    broken = (
        "{members: 1, podSelector: 1, endpointSelector: 1, subject: 1, selector: 1, workloadSelector: 1, targetRefs: 1}"
    )
    result = run(written(kind, broken), "check", *question(kind))
    assert result.exit_code == 2


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_it_is_no_error_of_the_folder(kind: UnreadKind, run: Run) -> None:
    assert run(written(kind), "get", "workloads").exit_code == 0
    assert not dialects.reads(f"{kind.group}/v1", kind.kind)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.effect is UnreadEffect.NONE], ids=named)
def test_a_kind_without_effect_is_not_reported(kind: UnreadKind, run: Run) -> None:
    result = run(written(kind), "check", *WEB_TO_CART)
    assert (result.exit_code, "not considered" in result.output) == (0, False)


def test_every_kind_is_listed_once_and_written_as_definitions_write_it() -> None:
    assert [name for name, number in Counter((kind.group, kind.kind) for kind in KINDS).items() if number > 1] == []
    for kind in KINDS:
        assert re.fullmatch(r"[a-z0-9.-]+", kind.group)
        assert re.fullmatch(r"[A-Z][A-Za-z]+", kind.kind)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("acme.example/v1", "NetworkPolicy"),
        ("networking.k8s.io/v1", "networkpolicy"),
        ("acme.example/v1", "AuthorizationPolicy"),
        ("cilium.io/v2", "CiliumNetworkPolicies"),
    ],
)
def test_an_unknown_kind_with_the_name_of_a_policy_gives_no_answer(api_version: str, kind: str, run: Run) -> None:
    result = run(
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: one, namespace: shop}}\n", "check", *WEB_TO_CART
    )
    assert result.exit_code == 2
    assert "write apiVersion" not in result.output  # no misspelling of a known kind


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("constraints.gatekeeper.sh/v1beta1", "K8sRequiredLabels"),
        ("kyverno.io/v1", "ClusterPolicy"),
        ("policy/v1", "PodDisruptionBudget"),
        ("argoproj.io/v1alpha1", "Application"),
        ("networking.istio.io/v1", "ServiceEntry"),
        ("route.openshift.io/v1", "Route"),
    ],
)
def test_what_decides_no_traffic_is_left_aside(api_version: str, kind: str, run: Run) -> None:
    result = run(
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: one, namespace: shop}}\n", "check", *WEB_TO_CART
    )
    assert (result.exit_code, "not considered" in result.output) == (0, False)
