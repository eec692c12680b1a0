"""Each resource in each version accepts the smallest and the largest valid document."""

from __future__ import annotations

import pytest

from eastgate.dialects.linkerd.model import GROUP, LinkerdResource
from eastgate.ir import PolicyRef
from tests.dialects.linkerd.reading import META, VERSIONS, judge, manifest

MINIMAL = {
    "Server": "{podSelector: {}, port: 80}",
    "ServerAuthorization": "{server: {name: web}, client: {unauthenticated: true}}",
    "AuthorizationPolicy": "{targetRef: {kind: Namespace, name: shop}, requiredAuthenticationRefs: []}",
    "MeshTLSAuthentication": "{identities: ['*']}",
    "NetworkAuthentication": "{networks: [{cidr: 10.0.0.1}]}",
    "HTTPRoute": "{}",
}
MAXIMAL = {
    "Server": """
port: http
podSelector:
  matchLabels: {app: web}
  matchExpressions: [{key: tier, operator: NotIn, values: [db]}, {key: app, operator: Exists}]
proxyProtocol: HTTP/2
accessPolicy: cluster-unauthenticated
""",
    "ServerAuthorization": """
server:
  selector:
    matchLabels: {app: web}
    matchExpressions: [{key: tier, operator: In, values: [front]}]
client:
  networks: [{cidr: 10.0.0.0/8, except: [10.1.0.0/16, 10.2.0.1]}, {cidr: fd00::/8}]
  unauthenticated: false
  meshTLS:
    unauthenticatedTLS: false
    identities: ['*', '*.west.example.com', web.shop.serviceaccount.identity.linkerd.cluster.local]
    serviceAccounts: [{name: web}, {name: web, namespace: pay}]
""",
    "AuthorizationPolicy": """
targetRef: {group: policy.linkerd.io, kind: Server, name: web}
requiredAuthenticationRefs:
- {group: policy.linkerd.io, kind: MeshTLSAuthentication, name: web, namespace: pay}
- {group: policy.linkerd.io, kind: NetworkAuthentication, name: office}
""",
    "MeshTLSAuthentication": """
identityRefs:
- {group: core, kind: ServiceAccount, name: web, namespace: pay}
- {group: '', kind: Namespace, name: ops}
""",
    "NetworkAuthentication": """
networks: [{cidr: 10.0.0.0/8, except: [10.1.0.0/16]}, {cidr: '::/0'}]
""",
    "HTTPRoute": """
parentRefs: [{group: policy.linkerd.io, kind: Server, name: web, namespace: shop}]
hostnames: [web.example.com, '*.example.org']
rules:
- matches:
  - path: {type: Exact, value: /a}
    headers: [{name: x-team, type: RegularExpression, value: 'p.*'}]
    queryParams: [{name: q, type: Exact, value: a}]
    method: GET
  filters:
  - type: RequestHeaderModifier
    requestHeaderModifier: {set: [{name: a, value: b}], add: [{name: a, value: b}], remove: [a]}
  - type: ResponseHeaderModifier
    responseHeaderModifier: {remove: [a]}
  - type: RequestRedirect
    requestRedirect:
      scheme: https
      hostname: a.example.com
      path: {type: ReplaceFullPath, replaceFullPath: /b}
      port: 443
      statusCode: 302
  backendRefs: [{group: '', kind: Service, name: a, namespace: shop, port: 80, weight: 1}]
  timeouts: {request: 10s, backendRequest: 5s}
""",
}
FORMS = [(kind, version) for kind, versions in VERSIONS.items() for version in versions]


@pytest.mark.parametrize(("kind", "version"), FORMS)
def test_the_least_that_can_be_written_is_read_in_every_version(kind: str, version: str) -> None:
    read, found = judge(manifest(kind, MINIMAL[kind], version=version))
    assert found == []
    assert isinstance(read, LinkerdResource)
    assert read.ref == PolicyRef(kind, "shop", "p", GROUP)
    assert (read.span.line, read.audit) == (1, False)


@pytest.mark.parametrize(("kind", "version"), FORMS)
def test_the_most_that_can_be_written_is_read_in_every_version_that_has_it(kind: str, version: str) -> None:
    spec = MAXIMAL[kind]
    if kind == "Server" and version != "v1beta3":
        spec = spec.replace("accessPolicy: cluster-unauthenticated", "")
    assert judge(manifest(kind, spec, version=version))[1] == []


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_resource_without_a_namespace_is_of_the_default_one(kind: str) -> None:
    spec = MINIMAL[kind].replace("name: shop", "name: default")
    read, found = judge(manifest(kind, spec, "{name: p}"))
    assert found == []
    assert read is not None
    assert read.ref.namespace == "default"


@pytest.mark.parametrize("kind", VERSIONS)
@pytest.mark.parametrize(("mode", "audit"), [("audit", True), ("enforce", False)])
def test_what_decides_can_be_audited_and_what_is_only_referred_to_cannot(kind: str, mode: str, audit: bool) -> None:
    decides = kind in ("Server", "ServerAuthorization", "AuthorizationPolicy")
    metadata = META.replace("}", f", annotations: {{eastgate.dev/mode: {mode}}}}}")
    read, found = judge(manifest(kind, MINIMAL[kind], metadata))
    assert read is not None
    assert read.audit is (audit and decides)
    assert [one.code.id for one in found] == (["EG4034"] if audit and not decides else [])


@pytest.mark.parametrize("kind", ["Server", "ServerAuthorization"])
def test_what_the_api_server_adds_is_no_mistake(kind: str) -> None:
    metadata = "{name: p, creationTimestamp: '2026-01-01T00:00:00Z', uid: a, managedFields: [], resourceVersion: '1'}"
    assert judge(manifest(kind, MINIMAL[kind], metadata) + "status: {}\n")[1] == []
