"""Auth schemes for tests, read from text exactly as they are in a policy."""

from __future__ import annotations

from dataclasses import fields
from textwrap import indent

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.nulls import without_nulls
from eastgate.dialects.kuadrant.schemes import SCHEME, read_scheme
from eastgate.reading.manifests import read_text
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, check
from eastgate.settings import Settings

OLD_START = "hosts: [a.example]\nidentity: [{name: all, anonymous: {}}]\n"
NEW_START = "hosts: [a.example]\nauthentication: {all: {anonymous: {}}}\n"

OLD = r"""
hosts: [a.example, "*.b.example"]
patterns:
  staff:
  - {selector: auth.identity.groups, operator: incl, value: staff}
  - {selector: auth.identity.email_verified, operator: eq, value: "true"}
  reads:
  - {selector: request.method, operator: matches, value: ^(GET|HEAD)$}
when:
- {selector: request.path, operator: neq, value: /health}
- any: [{patternRef: reads}, {all: [{patternRef: staff}, {selector: request.host, operator: eq}]}]
- predicate: request.method != 'TRACE'
identity:
- name: idp
  oidc: {endpoint: "https://idp.example/realms/shop", ttl: 300, audiences: [shop]}
  credentials: {in: cookie, keySelector: TOKEN}
  extendedProperties:
  - {name: roles, valueFrom: {authJSON: auth.identity.realm_access.roles}}
  - {name: source, value: [idp, 1], overwrite: true}
- name: keys
  priority: 1
  apiKey: {selector: {matchLabels: {group: friends}, matchExpressions: [{key: old, operator: DoesNotExist}]}}
  credentials: {in: authorization_header, keySelector: APIKEY}
- name: certificates
  mtls: {selector: {matchLabels: {ca: shop}}, allNamespaces: false}
- name: accounts
  kubernetes: {audiences: [shop, api]}
  credentials: {in: custom_header, keySelector: X-Token}
- name: opaque
  oauth2:
    tokenIntrospectionUrl: https://idp.example/introspect
    tokenTypeHint: requesting_party_token
    credentialsRef: {name: client}
  credentials: {in: query, keySelector: token}
  cache: {key: {valueFrom: {authJSON: request.headers.authorization}}, ttl: 30}
- name: proxy
  metrics: false
  plain: {authJSON: 'metadata.filter_metadata.envoy\.filters\.http\.jwt_authn|verified_jwt'}
- name: rest
  priority: 2
  anonymous: {}
  when: [{patternRef: reads}]
metadata:
- name: geo
  http:
    endpoint: 'http://geo.example/json/{request.headers.x-forwarded-for.@extract:{"sep":","}}?fields=country'
    headers: [{name: Accept, value: application/json}]
    sharedSecretRef: {name: geo, key: token}
    credentials: {in: custom_header, keySelector: X-Key}
- name: orders
  priority: 1
  http:
    endpoint: http://orders.example/
    method: POST
    contentType: application/json
    bodyParameters: [{name: id, valueFrom: {authJSON: auth.identity.sub}}, {name: all, value: false}]
  cache: {key: {value: orders}}
- name: raw
  http: {endpoint: "http://raw.example", method: POST, body: {valueFrom: {authJSON: "Hello, {auth.identity.name}!"}}}
authorization:
- name: claims
  json: {rules: [{patternRef: staff}, {selector: auth.metadata.geo.country, operator: excl, value: XX}]}
- name: rego
  priority: 1
  when: [{selector: auth.identity.anonymous, operator: neq, value: "true"}]
  opa:
    inlineRego: |
      allow { input.auth.identity.sub == "jane" }
    allValues: true
- name: rbac
  kubernetes:
    user: {valueFrom: {authJSON: auth.identity.user.username}}
    groups: [readers]
    resourceAttributes:
      namespace: {value: shop}
      group: {value: shop.example}
      resource: {value: orders}
      name: {valueFrom: {authJSON: 'request.path.@extract:{"sep":"/","pos":2}'}}
      verb: {valueFrom: {authJSON: request.method.@case:lower}}
- name: endpoint
  kubernetes: {user: {value: jane}}
response:
- name: x-user
  plain: {valueFrom: {authJSON: auth.identity.sub}}
- name: data
  wrapperKey: x-data
  priority: 1
  json: {properties: [{name: who, valueFrom: {authJSON: auth.identity.sub}}, {name: when, value: {now: true}}]}
- name: limits
  wrapper: envoyDynamicMetadata
  wrapperKey: ext_auth_data
  json: {properties: [{name: user, valueFrom: {authJSON: auth.identity.sub}}]}
denyWith:
  unauthenticated:
    code: 302
    headers: [{name: Location, valueFrom: {authJSON: "https://a.example/login?to={request.path}"}}]
  unauthorized:
    message: {value: no}
    body: {valueFrom: {authJSON: "Not for {auth.identity.sub}"}}
""".replace("{value: no}", '{value: "no"}')

NEW = r"""
hosts: [a.example, "*.b.example"]
patterns:
  staff:
  - {selector: auth.identity.groups, operator: incl, value: staff}
  - {selector: auth.identity.email_verified, operator: eq, value: "true"}
  reads:
  - {selector: request.method, operator: matches, value: ^(GET|HEAD)$}
when:
- {selector: request.path, operator: neq, value: /health}
- any: [{patternRef: reads}, {all: [{patternRef: staff}, {selector: request.host, operator: eq}]}]
- predicate: request.method != 'TRACE'
authentication:
  idp:
    jwt: {issuerUrl: "https://idp.example/realms/shop", ttl: 300, audiences: [shop]}
    credentials: {cookie: {name: TOKEN}}
    defaults: {roles: {selector: auth.identity.realm_access.roles}}
    overrides: {source: {value: [idp, 1]}}
  keys:
    priority: 1
    apiKey: {selector: {matchLabels: {group: friends}, matchExpressions: [{key: old, operator: DoesNotExist}]}}
    credentials: {authorizationHeader: {prefix: APIKEY}}
  certificates:
    x509: {selector: {matchLabels: {ca: shop}}, allNamespaces: false}
  accounts:
    kubernetesTokenReview: {audiences: [shop, api]}
    credentials: {customHeader: {name: X-Token}}
  opaque:
    oauth2Introspection:
      endpoint: https://idp.example/introspect
      tokenTypeHint: requesting_party_token
      credentialsRef: {name: client}
    credentials: {queryString: {name: token}}
    cache: {key: {selector: request.headers.authorization}, ttl: 30}
  proxy:
    metrics: false
    plain: {selector: 'metadata.filter_metadata.envoy\.filters\.http\.jwt_authn|verified_jwt'}
  rest:
    priority: 2
    anonymous: {}
    when: [{patternRef: reads}]
metadata:
  geo:
    http:
      url: 'http://geo.example/json/{request.headers.x-forwarded-for.@extract:{"sep":","}}?fields=country'
      headers: {Accept: {value: application/json}}
      sharedSecretRef: {name: geo, key: token}
      credentials: {customHeader: {name: X-Key}}
  orders:
    priority: 1
    http:
      url: http://orders.example/
      method: POST
      contentType: application/json
      bodyParameters: {id: {selector: auth.identity.sub}, all: {value: false}}
    cache: {key: {value: orders}}
  raw:
    http: {url: "http://raw.example", method: POST, body: {selector: "Hello, {auth.identity.name}!"}}
authorization:
  claims:
    patternMatching:
      patterns: [{patternRef: staff}, {selector: auth.metadata.geo.country, operator: excl, value: XX}]
  rego:
    priority: 1
    when: [{selector: auth.identity.anonymous, operator: neq, value: "true"}]
    opa:
      rego: |
        allow { input.auth.identity.sub == "jane" }
      allValues: true
  rbac:
    kubernetesSubjectAccessReview:
      user: {selector: auth.identity.user.username}
      groups: [readers]
      resourceAttributes:
        namespace: {value: shop}
        group: {value: shop.example}
        resource: {value: orders}
        name: {selector: 'request.path.@extract:{"sep":"/","pos":2}'}
        verb: {selector: request.method.@case:lower}
  endpoint:
    kubernetesSubjectAccessReview: {user: {value: jane}}
response:
  unauthenticated:
    code: 302
    headers: {Location: {selector: "https://a.example/login?to={request.path}"}}
  unauthorized:
    message: {value: "no"}
    body: {selector: "Not for {auth.identity.sub}"}
  success:
    headers:
      x-user: {plain: {selector: auth.identity.sub}}
      data:
        key: x-data
        priority: 1
        json: {properties: {who: {selector: auth.identity.sub}, when: {value: {now: true}}}}
    dynamicMetadata:
      limits:
        key: ext_auth_data
        json: {properties: {user: {selector: auth.identity.sub}}}
"""


def node(text: str, name: str = "policy.yaml") -> Node:
    """Return the scheme in a text. In the file it begins in line 5, in column 3."""
    head = "apiVersion: kuadrant.example/v1\nkind: Scheme\nmetadata: {name: s}\nspec:\n"
    reading = read_text(name, head + indent(text.strip("\n") + "\n", "  "), positioned=lambda *_: True)
    assert reading.reporter.diagnostics == []
    (document,) = reading.documents
    assert document.node is not None
    return without_nulls(document.node)["spec"]


def judge(text: str) -> tuple[Scheme | None, list[Diagnostic]]:
    """Return the scheme in a text, or None, and all diagnostics about it."""
    return judge_node(node(text))


def judge_node(scheme: Node) -> tuple[Scheme | None, list[Diagnostic]]:
    reporter = Reporter()
    check(SCHEME, scheme, Check(reporter, Settings()))
    return (None if reporter.errors else read_scheme(scheme, "shop")), reporter.diagnostics


def scheme(text: str) -> Scheme:
    """Return the scheme in a text without errors."""
    read, found = judge(text)
    assert found == []
    assert read is not None
    return read


def content(read: Scheme) -> dict[str, object]:
    """Return the content of a scheme without its spans."""
    return {one.name: getattr(read, one.name) for one in fields(read) if one.name != "span"}
