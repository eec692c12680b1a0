"""Names in questions that are probably misspelt, and names that only look alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate import Authority, load
from eastgate.authority.questions import Question
from eastgate.authority.spelling import KnownNames
from eastgate.basics.diagnostics import mistyped

MANIFESTS = """\
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: reviews, namespace: bookinfo}
spec:
  enforcementLevel: APPLICATION
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: reviews}}}]
  action: ALLOW
  rules:
  - authorizationSource:
      serviceAccounts: [productpage, monitoring/prometheus, partners/*]
      identities: ["spiffe://partner.example/billing/batch"]
    applicationAttributes: {methods: [GET, PURGE], paths: [/api/*]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: targets-nothing, namespace: bookinfo}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: gone}}}]
  action: ALLOW
  rules:
  - authorizationSource: {serviceAccounts: [productpag]}
---
apiVersion: v1
kind: Pod
metadata: {name: reviews-1, namespace: bookinfo, labels: {app: reviews}}
spec: {serviceAccountName: bookinfo-reviews}
---
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: bookinfo}
spec: {selector: {app: reviews}, ports: [{port: 9080}]}
"""

AGENTS = """\
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XBackend
metadata: {name: tools, namespace: shop}
spec: {mcp: {serviceName: tools, port: 8080}}
---
apiVersion: agentic.networking.x-k8s.io/v1alpha1
kind: XAccessPolicy
metadata: {name: refunds, namespace: shop}
spec:
  targetRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: tools}]
  action: Allow
  rules:
  - name: r
    source: {type: ServiceAccount, serviceAccount: {name: agent}}
    authorization:
      type: Inline
      headers: [{type: Exact, name: x-tenant, value: a}]
      mcp: {methods: [{name: tools/call, params: [refund]}]}
---
apiVersion: agentic.networking.x-k8s.io/v1alpha1
kind: XAccessPolicy
metadata: {name: asks, namespace: shop}
spec:
  targetRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: tools}]
  action: ExternalAuth
  externalAuth: {protocol: GRPC, grpc: {}, backendRef: {name: authz, port: 9000}}
  rules: [{name: r, source: {type: ServiceAccount, serviceAccount: {name: agent}}}]
"""

LINKERD = """\
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {name: api, namespace: shop}
spec: {podSelector: {}, port: 80}
---
apiVersion: policy.linkerd.io/v1alpha1
kind: MeshTLSAuthentication
metadata: {name: known, namespace: shop}
spec: {identities: ["frontend.shop.serviceaccount.identity.linkerd.cluster.local"]}
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {name: api, namespace: shop}
spec:
  targetRef: {group: policy.linkerd.io, kind: Server, name: api}
  requiredAuthenticationRefs: [{group: policy.linkerd.io, kind: MeshTLSAuthentication, name: known}]
---
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop}
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    path = tmp_path_factory.mktemp("spelling") / "m.yaml"
    path.write_text(MANIFESTS)
    return load(path)


def helps(authority: Authority, source: str = "anonymous", **asked: object) -> list[str]:
    question = Question.of(source, "pod:bookinfo/reviews-1", **asked)  # type: ignore[arg-type]
    return [doubt.help for doubt in KnownNames(authority).doubts(question)]


@pytest.mark.parametrize(
    ("source", "meant"),
    [
        ("sa:bookinfo/prodcutpage", "sa:bookinfo/productpage"),
        ("sa:bookinfo/bookinfo-review", "sa:bookinfo/bookinfo-reviews"),
        ("sa:bokinfo/productpage", "sa:bookinfo/productpage"),
        ("sa:bokinfo/default", "sa:bookinfo/default"),
        ("sa:bokinfo/productpgae", "sa:bookinfo/productpage"),
        ("sa:monitorng/prometheus", "sa:monitoring/prometheus"),
        ("sa:partner/anybody", "sa:partners/anybody"),
        (
            "spiffe://cluster.local/ns/bookinfo/sa/produktpage",
            "spiffe://cluster.local/ns/bookinfo/sa/productpage",
        ),
        ("spiffe://partner.exmaple/billing/batch", "spiffe://partner.example/billing/batch"),
        ("id:productpagee.bookinfo.serviceaccount.identity.linkerd.cluster.local", "id:productpage.bookinfo.service"),
    ],
)
def test_a_caller_that_is_nearly_one_that_is_known(authority: Authority, source: str, meant: str) -> None:
    [way_out] = helps(authority, source)
    assert way_out.startswith(f"did you mean {meant}")


@pytest.mark.parametrize(
    "source",
    [
        "sa:bookinfo/productpage",
        "sa:bookinfo/bookinfo-reviews",
        "sa:bookinfo/default",
        "sa:default/default",
        "sa:monitoring/prometheus",
        "sa:partners/anybody",
        "sa:elsewhere/productpage",  # a test may be about the same name in another namespace
        "sa:bookinfo/ratings",
        "sa:bookinfo/productpage-2",  # numbers tell names apart
        "sa:bookinfo/productpag",  # a policy has it, though it has no target
        "spiffe://other.example/ns/bookinfo/sa/productpage",
        "pod:bookinfo/reviews-1",
        "ip:10.0.0.1",
        "anonymous",
    ],
)
def test_a_caller_that_may_well_be_meant(authority: Authority, source: str) -> None:
    assert helps(authority, source) == []


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({"method": "get"}, "write GET"),
        ({"method": "Delete"}, "write DELETE"),
        ({"method": "purge"}, "write PURGE"),
        ({"method": "PSOT"}, "did you mean POST?"),
        ({"host": "reveiws.bookinfo"}, "did you mean reviews.bookinfo?"),
        ({"host": "reveiws.bookinfo:9080"}, "did you mean reviews.bookinfo?"),
        ({"sni": "reviews.bokinfo.svc"}, "did you mean reviews.bookinfo.svc?"),
        ({"mcp_method": "tool/call"}, "did you mean tools/call?"),
    ],
)
def test_a_part_of_a_request_that_is_nearly_right(authority: Authority, asked: dict[str, str], meant: str) -> None:
    assert helps(authority, **asked) == [meant]


@pytest.mark.parametrize(
    "asked",
    [
        {"method": "GET"},
        {"method": "PURGE"},
        {"method": "REPORT"},
        {"host": "www.reviews.bookinfo"},
        {"host": "reviews.example"},
        {"mcp_method": "tools/call", "tool": "anything"},
        {"headers": {"x-any": "1"}, "claims": {"sub": "me"}},
    ],
)
def test_a_part_of_a_request_that_may_well_be_meant(authority: Authority, asked: dict[str, object]) -> None:
    assert helps(authority, **asked) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({"tool": "refnud"}, ["did you mean refund?"]),
        ({"tool": "Refund"}, ["did you mean refund?"]),
        ({"tool": "refund"}, []),
        ({"tool": "cancel"}, []),
        ({"external_auth": {"authz.shpo:9000": "allow"}}, ["did you mean authz.shop:9000?"]),
        ({"external_auth": {"authz.shop:9000": "allow"}}, []),
        ({"headers": {"X-Tenat": "a"}}, ["did you mean x-tenant?"]),
        ({"headers": {"X-Tenant": "a"}}, []),
    ],
)
def test_names_of_tools_headers_and_authorizers(tmp_path: Path, asked: dict[str, object], meant: list[str]) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(AGENTS)
    found = KnownNames(load(path)).doubts(Question.of("anonymous", "backend:shop/tools", **asked))  # type: ignore[arg-type]
    assert [doubt.help for doubt in found] == meant


def test_linkerds_names_of_accounts_are_known(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(LINKERD)
    spelling = KnownNames(load(path))
    assert spelling.doubts(Question.of("sa:shop/frontend", "pod:shop/api")) == []
    [doubt] = spelling.doubts(Question.of("sa:shop/forntend", "pod:shop/api"))
    assert doubt.help == "did you mean sa:shop/frontend?"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("crat", "cart"),
        ("wbe", "web"),
        ("Cart", "cart"),
        ("carts", "cart"),
        ("productpgae", "productpage"),
        ("prodctpge", "productpage"),
        ("a/b/serach", "a/b/search"),
    ],
)
def test_a_slip_of_the_keyboard(written: str, meant: str) -> None:
    assert mistyped(written, ["other", meant]) == meant


@pytest.mark.parametrize(
    ("written", "other"),
    [
        ("a", "b"),
        ("web", "wet"),
        ("reviews-v1", "reviews-v2"),
        ("bookstore-2", "bookstore"),
        ("a.bar.com", "bar.com"),
        ("file:///x", "file:///a"),
        ("cart", "payments"),
        ("read", "write"),
    ],
)
def test_two_names(written: str, other: str) -> None:
    assert mistyped(written, [other]) is None
