"""The objects that install Istio contain the MeshConfig, and the gateways that they create."""

from __future__ import annotations

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.reading import ManifestError
from eastgate.dialects.istio.mesh_config import mesh_settings
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.reports.lint import lint
from tests.dialects.linkerd.reading import authority

POLICY = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: ext, namespace: istio-system}
spec: {selector: {matchLabels: {istio: ingressgateway}}, action: CUSTOM, provider: {name: opa}, rules: [{}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {containers: [{name: c}]}
"""
MESH = """{pathNormalization: {normalization: FORM}, extensionProviders:
  [{name: opa, envoyExtAuthzGrpc: {service: opa.auth.svc.cluster.local, port: 9191}}]}"""
OPERATOR = """---
apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
metadata: {name: mesh, namespace: istio-system}
spec: {meshConfig: MESH}
"""
SAIL = """---
apiVersion: sailoperator.io/v1
kind: Istio
metadata: {name: default}
spec: {namespace: istio-system, values: {meshConfig: MESH}}
"""
FLUX = """---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: mesh, namespace: istio-system}
spec: {chart: {spec: {chart: istiod}}, values: {meshConfig: MESH}}
"""
ARGO = """---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: mesh, namespace: argocd}
spec: {source: {chart: istiod, helm: {valuesObject: {meshConfig: MESH}}}}
"""
ARGO_TEXT = ARGO.replace(
    "valuesObject: {meshConfig: MESH}",
    """values: "meshConfig: {pathNormalization: {normalization: FORM},\
  extensionProviders: [{name: opa, envoyExtAuthzGrpc: {service: opa.auth.svc.cluster.local, port: 9191}}]}" """,
)
CONFIG_MAP = """---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data: {mesh: "pathNormalization: {normalization: FORM}"}
"""
WITHOUT_METADATA = OPERATOR.replace("metadata: {name: mesh, namespace: istio-system}\n", "")
KINDS = {
    "IstioOperator": OPERATOR,
    "without metadata": WITHOUT_METADATA,
    "Istio": SAIL,
    "HelmRelease": FLUX,
    "Application": ARGO,
    "as text": ARGO_TEXT,
}


def told(installation: str, form: str = "MERGE_SLASHES") -> str:
    return installation.replace("MESH", MESH).replace("FORM", form)


def read(installations: str) -> Authority:
    return authority(POLICY + installations)


@pytest.mark.parametrize("installation", KINDS.values(), ids=KINDS)
def test_an_installation_contains_the_mesh_config(installation: str) -> None:
    reading = read(told(installation))
    mesh = mesh_settings(reading.settings, reading.world)
    assert mesh.path_normalization is PathNormalization.MERGE_SLASHES
    assert mesh.provider("opa") is not None
    assert "EG6116" not in {finding.code.id for finding in lint(reading)}


@pytest.mark.parametrize(
    "other",
    [
        FLUX.replace("istiod", "cilium"),
        ARGO.replace("istiod", "argo-cd"),
        ARGO.replace("{chart: istiod, helm", "{path: apps, helm"),
        OPERATOR.replace("install.istio.io", "example.com"),
    ],
)
def test_another_chart_contains_no_mesh_config(other: str) -> None:
    reading = read(told(other))
    assert not reading.world.installations
    assert mesh_settings(reading.settings, reading.world).provider("opa") is None


def test_the_gateways_of_an_operator_are_workloads() -> None:
    """An installation creates the gateways of its profile, and listed ones. A Deployment overrides these."""
    listed = """{profile: PROFILE, components: {ingressGateways: [
      {name: internal, namespace: edge, label: {istio: internal}}, {name: shut, enabled: false}]}}"""
    of_profile = told(OPERATOR.replace("{meshConfig: MESH}", listed))
    assert {*read(of_profile.replace("PROFILE", "minimal")).world.workloads} == {"shop/web", "edge/internal"}
    reading = read(of_profile.replace("PROFILE", "default"))
    assert {*reading.world.workloads} == {"shop/web", "edge/internal", "istio-system/istio-ingressgateway"}
    assert reading.world.workloads["edge/internal"].is_installed_gateway
    assert not {"EG6001", "EG6135"} & {finding.code.id for finding in lint(reading)}
    declared = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istio-ingressgateway, namespace: istio-system}
spec:
  selector: {matchLabels: {istio: ingressgateway}}
  template:
    metadata: {labels: {istio: ingressgateway}}
    spec: {serviceAccountName: gate, containers: [{name: c}]}
"""
    own = read(of_profile.replace("PROFILE", "default") + declared).world.workloads
    assert own["istio-system/istio-ingressgateway"].service_account == "gate"
    assert len(own) == 3


@pytest.mark.parametrize("profile", ["default", "demo", "openshift", "preview", "stable"])
@pytest.mark.parametrize("metadata", ["", "metadata: {namespace: operators}", "metadata: {name: mesh}"])
def test_the_gateways_are_in_the_namespace_of_the_control_plane(profile: str, metadata: str) -> None:
    """An IstioOperator is a file for istioctl: it needs no name, and its own namespace is ignored."""
    operator = WITHOUT_METADATA.replace("kind: IstioOperator", f"kind: IstioOperator\n{metadata}")
    reading = read(operator.replace("{meshConfig: MESH}", f"{{profile: {profile}}}"))
    assert "istio-system/istio-ingressgateway" in reading.world.workloads


def test_the_values_of_an_operator_count_more_than_its_mesh_config() -> None:
    spec = """{meshConfig: {pathNormalization: {normalization: NONE}, trustDomainAliases: [old]},
      values: {meshConfig: {pathNormalization: {normalization: MERGE_SLASHES}}}}"""
    reading = read(OPERATOR.replace("{meshConfig: MESH}", spec))
    mesh = mesh_settings(reading.settings, reading.world)
    assert (mesh.trust_domains, mesh.path_normalization) == (("cluster.local", "old"), PathNormalization.MERGE_SLASHES)


def test_gateways_come_and_go_with_their_operator() -> None:
    changing = read(told(OPERATOR))
    (installation,) = changing.world.installations.values()
    changing.update(remove=[installation.id])
    assert {*changing.world.workloads} == {"shop/web"}
    changing.update(put=[installation])
    assert {*changing.world.workloads} == {"shop/web", "istio-system/istio-ingressgateway"}


@pytest.mark.parametrize(
    ("first", "second"),
    [(OPERATOR, FLUX), (OPERATOR, OPERATOR.replace("name: mesh", "name: other")), (CONFIG_MAP, SAIL)],
    ids=["operator and chart", "two operators", "ConfigMap and operator"],
)
def test_sources_that_contradict_each_other_are_an_error(first: str, second: str) -> None:
    if first is not CONFIG_MAP:  # the ConfigMap names no provider
        read(told(first) + told(second))
    with pytest.raises(ManifestError, match="is another than that of"):
        read(told(first, "NONE") + told(second, "BASE"))


def test_a_field_of_only_one_of_two_installations_counts() -> None:
    domain = OPERATOR.replace("name: mesh", "name: other").replace("MESH", "{trustDomainAliases: [old]}")
    reading = read(told(OPERATOR) + domain)
    mesh = mesh_settings(reading.settings, reading.world)
    assert (mesh.trust_domains, mesh.path_normalization) == (("cluster.local", "old"), PathNormalization.MERGE_SLASHES)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("{meshConfig: [1]}", "IstioOperator istio-system/mesh cannot be read: it is not a mapping"),
        ("{meshConfig: {trustDomain: other.example}}", "names the trust domain other.example"),
        ("{values: {global: {istioNamespace: mesh}}}", "names the root namespace mesh"),
    ],
)
def test_an_installation_of_another_mesh_is_an_error(spec: str, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem):
        read(OPERATOR.replace("{meshConfig: MESH}", spec))
