"""No AuthConfig and no rules crash the reader. For any value at any place, the result is a scheme or a diagnostic.

Each value of a large AuthConfig is replaced by every sort of wrong value, and left out.
"""

from __future__ import annotations

import json

import pytest

from eastgate.basics.diagnostics import render
from eastgate.dialects.kuadrant.nulls import without_nulls
from eastgate.dialects.kuadrant.schemes import AUTH_CONFIG_SPEC, AUTH_CONFIG_SPEC_V1BETA1, RULES, read_scheme
from eastgate.reading.manifests import Plain, read_text
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings
from tests.dialects.gep3779.test_no_document_crashes import WRONG, changed, paths
from tests.dialects.kuadrant.scheme_texts import node
from tests.dialects.kuadrant.schemes.reading import problems

HEAD = {"apiVersion": "kuadrant.example/v1", "kind": "Scheme", "metadata": {"name": "s"}}
SECTIONS = """
authentication:
  idp: {jwt: {issuerUrl: "https://idp"}}
  certificates:
    x509: {selector: {matchLabels: {a: b}}, allNamespaces: true, source: {xfccHeader: x-cert}}
  computed: {plain: {expression: request.method}, credentials: {}}
metadata:
  info: {userInfo: {identitySource: idp, timeout: 5}}
  resources: {uma: {endpoint: "https://uma", credentialsRef: {name: c}}}
  more:
    http:
      urlExpression: request.host
      oauth2: &client
        tokenUrl: https://idp/token
        clientId: me
        clientSecretRef: {name: s, key: k}
        scopes: [a]
        extraParams: {x: z}
        cache: false
authorization:
  groups: {kubernetesSubjectAccessReview: {authorizationGroups: {expression: "['a']"}}}
  module: {opa: {externalPolicy: {url: "http://opa", ttl: 5, sharedSecretRef: {name: s, key: k}}, version: v1}}
  database:
    spicedb:
      endpoint: db:50051
      insecure: true
      sharedSecretRef: {name: s, key: k}
      subject: {name: {selector: auth.identity.sub}, kind: {value: user}}
      resource: {name: {value: a}, kind: {value: b}}
      permission: {value: read}
response:
  success:
    headers:
      x-band:
        wristband:
          issuer: https://a
          tokenDuration: 60
          customClaims: {age: {selector: auth.identity.age}}
          signingKeyRefs: [{name: k, algorithm: ES256}]
callbacks:
  log: {http: {url: "http://log", method: POST, body: {selector: auth.identity}}, priority: 1, when: []}
""".replace("&client", "")
NEW = "hosts: [a.example, 'b.example:8000']\n" + SECTIONS
OLD = """
hosts: [a.example]
identity: [{name: k, apiKey: {selector: {matchLabels: {a: b}}, allNamespaces: true}}]
authorization:
- {name: module, opa: {externalRegistry: {endpoint: "http://opa", ttl: 5}}}
- name: database
  authzed:
    endpoint: db:50051
    subject: {name: {valueFrom: {authJSON: auth.identity.sub}}, kind: {value: user}}
    resource: {name: {value: a}, kind: {value: b}}
    permission: {value: read}
response: [{name: w, wristband: {issuer: i, signingKeyRefs: [{name: k, algorithm: RS256}]}}]
callbacks: [{name: log, http: {endpoint: "http://log", method: POST}}]
"""


def findings(value: Plain, shape: Record[Settings]) -> int:
    text = json.dumps({**HEAD, "spec": value})
    (document,) = read_text("policy.json", text, positioned=lambda *_: True).documents
    assert document.node is not None
    spec = without_nulls(document.node)["spec"]
    found = problems(shape, spec)
    if not any(one.is_error for one in found):
        read_scheme(spec, "shop")
    assert all(one.span is not None and one.help and render(one) for one in found)
    return len(found)


@pytest.mark.parametrize(
    ("text", "shape"),
    [(NEW, AUTH_CONFIG_SPEC), (SECTIONS, RULES), (OLD, AUTH_CONFIG_SPEC_V1BETA1)],
    ids=["v1beta3", "rules", "v1beta1"],
)
def test_there_is_a_scheme_or_there_is_a_reason(text: str, shape: Record[Settings]) -> None:
    value = node(text).plain()
    assert findings(value, shape) == 0
    for path in paths(value):
        in_source = path[:2] in (("authentication", "idp"), ("authentication",))  # userInfo names this identity
        assert findings(changed(value, path), shape) <= 1 or in_source or path[0] == "authentication", path
        for wrong in WRONG:
            found = findings(changed(value, path, wrong), shape)
            assert found <= 1 or isinstance(wrong, dict) or path[0] == "authentication", (path, wrong)
