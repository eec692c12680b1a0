"""The recognition of policies: a document that claims to be one and cannot be read is refused, never ignored."""

from __future__ import annotations

import pytest

from eastgate import dialects
from eastgate.basics.diagnostics import Code
from eastgate.dialects import codes
from tests.dialects.gep3779.test_accepted import MINIMAL
from tests.dialects.reading import FORMS, GROUP, document, judge, manifest


def claim(api_version: str, kind: str) -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: p}}\n"


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_the_gep_are_policies_that_are_read(form: str) -> None:
    one = document(manifest(form, MINIMAL[form]))
    assert dialects.is_policy(one)
    assert dialects.reads(one.api_version, one.kind)


NO_POLICIES = [
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("networking.k8s.io/v1", "Ingress"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("gateway.networking.k8s.io/v1alpha3", "BackendTLSPolicy"),
    ("networking.istio.io/v1", "VirtualService"),
    ("networking.istio.io/v1", "Gateway"),
    ("kuadrant.io/v1", "RateLimitPolicy"),
    # a kind of a policy group that is not a policy
    (f"{GROUP}/v1alpha1", "XBackendTrafficPolicy"),
    (f"{GROUP}/v1alpha1", "XListenerSet"),
    (f"{GROUP}/v1alpha1", "XMesh"),
    ("eastgate.dev/v1alpha1", "DecisionTest"),
]


@pytest.mark.parametrize(("api_version", "kind"), NO_POLICIES)
def test_a_document_that_claims_nothing_is_not_a_policy(api_version: str, kind: str) -> None:
    assert not dialects.is_policy(document(claim(api_version, kind)))
    assert not dialects.reads(api_version, kind)


REFUSED = [
    # api version, kind, code, underlined
    (f"{GROUP}/v1", "AuthorizationPolicy", codes.UNKNOWN_VERSION, "v1"),
    (f"{GROUP}/v1alpha2", "XAuthorizationPolicy", codes.UNKNOWN_VERSION, "v1alpha2"),
    ("eastgate.dev/v1", "ClusterAuthorizationPolicy", codes.UNKNOWN_VERSION, "v1"),
    (f"{GROUP}/v1alpha1", "AuthorizationPolicies", codes.UNKNOWN_KIND, None),
    (f"{GROUP}/v1alpha1", "Whatever", codes.UNKNOWN_KIND, None),
    ("eastgate.dev/v1alpha1", "DecisionTests", codes.UNKNOWN_KIND, None),
    # Eastgate's kinds in another group: the group is wrong or misspelt
    ("eastgate.dev/v1alpha1", "AuthorizationPolicy", codes.UNKNOWN_KIND, None),
    ("gateway.networking.k8s.io/v1", "AuthorizationPolicy", codes.UNKNOWN_KIND, None),
    ("gateway.networking.xk8s.io/v1alpha1", "XAuthorizationPolicy", codes.UNKNOWN_KIND, None),
    ("v1", "AuthorizationPolicy", codes.UNKNOWN_KIND, None),
    ("example.org/v1", "ClusterAuthorizationPolicy", codes.UNKNOWN_KIND, None),
]


@pytest.mark.parametrize(("api_version", "kind", "code", "version"), REFUSED)
def test_a_policy_that_cannot_be_read_is_refused_with_the_reason(
    api_version: str, kind: str, code: Code, version: str | None
) -> None:
    text = claim(api_version, kind)
    assert dialects.is_policy(document(text))
    assert not dialects.reads(api_version, kind)
    read, (found,) = judge(text)
    assert read is None
    assert found.code is code
    assert found.span is not None
    assert found.span.underlined in (api_version, kind)
    assert found.help
    assert version is None or f"no version `{version}`" in found.message


@pytest.mark.parametrize(
    ("api_version", "kind", "way_out"),
    [
        (f"{GROUP}/v1", "AuthorizationPolicy", f"write {GROUP}/v1alpha1 or {GROUP}/v1alpha2"),
        (f"{GROUP}/v1alpha1", "xauthorizationpolicy", "did you mean XAuthorizationPolicy?"),
        ("v1", "XAuthorizationPolicy", f"write apiVersion: {GROUP}/v1alpha1"),
        ("eastgate.dev/v1alpha1", "Whatever", "the policies of this group are ClusterAuthorizationPolicy"),
    ],
)
def test_the_help_names_valid_values(api_version: str, kind: str, way_out: str) -> None:
    _, (found,) = judge(claim(api_version, kind))
    assert found.help == way_out
