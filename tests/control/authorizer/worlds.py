"""The manifests of these tests: pods, an MCP gateway with both levels and external authorizers, and an AuthPolicy."""

from __future__ import annotations

from io import BytesIO
from threading import Lock

from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.control.authorizer.checks import ProxyCheck
from eastgate.control.authorizer.deciding import CheckOptions, LiveAuthorizer
from eastgate.ir import Answer, Reply
from eastgate.settings import Settings

__all__ = ["MANIFESTS", "POD", "POD_ADDRESS", "Services", "live_authorizer"]

POD_ADDRESS = "127.0.0.5"

POD = f"""
apiVersion: v1
kind: Pod
metadata: {{name: reviews, namespace: shop, labels: {{app: reviews}}}}
spec: {{serviceAccountName: reviews, containers: [{{name: app, ports: [{{containerPort: 9080}}]}}]}}
status: {{podIP: {POD_ADDRESS}}}
---
"""
MANIFESTS = f"""{POD}
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: reviews-from-web, namespace: shop}}
spec:
  enforcementLevel: APPLICATION
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: reviews}}}}}}]
  action: ALLOW
  rules:
  - authorizationSource: {{serviceAccounts: [web]}}
    applicationAttributes: {{paths: [/reviews/*], methods: [GET]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: agents, namespace: prod}}
spec:
  gatewayClassName: agentic
  listeners: [{{name: mcp, port: 80, protocol: HTTP, allowedRoutes: {{namespaces: {{from: All}}}}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: tools, namespace: prod}}
spec:
  parentRefs: [{{name: agents}}]
  hostnames: [mcp.example]
  rules: [{{backendRefs: [{{group: agentic.prototype.x-k8s.io, kind: XBackend, name: files}}]}}]
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XBackend
metadata: {{name: files, namespace: prod}}
spec: {{mcp: {{serviceName: files, port: 8080}}}}
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {{name: asked-at-the-gateway, namespace: prod}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: agents}}]
  rules:
  - name: auditor
    source: {{type: ServiceAccount, serviceAccount: {{name: auditor}}}}
    authorization:
      type: ExternalAuth
      externalAuth: {{protocol: GRPC, grpc: {{}}, backendRef: {{name: front, port: 9000}}}}
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {{name: asked-at-the-backend, namespace: prod}}
spec:
  targetRefs: [{{group: agentic.prototype.x-k8s.io, kind: XBackend, name: files}}]
  rules:
  - name: auditor
    source: {{type: ServiceAccount, serviceAccount: {{name: auditor}}}}
    authorization:
      type: ExternalAuth
      externalAuth: {{protocol: HTTP, http: {{path: /check}}, backendRef: {{name: back, port: 9000}}}}
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {{name: tools-of-agents, namespace: prod}}
spec:
  targetRefs: [{{group: agentic.prototype.x-k8s.io, kind: XBackend, name: files}}]
  rules:
  - name: agent
    source: {{type: ServiceAccount, serviceAccount: {{name: agent}}}}
    authorization: {{type: InlineTools, tools: [read, list]}}
  - name: auditor
    source: {{type: ServiceAccount, serviceAccount: {{name: auditor}}}}
    authorization: {{type: InlineTools, tools: [read]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: store, namespace: toys}}
spec:
  gatewayClassName: istio
  listeners: [{{name: http, port: 80, protocol: HTTP, allowedRoutes: {{namespaces: {{from: All}}}}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: toystore, namespace: toys}}
spec:
  parentRefs: [{{name: store}}]
  hostnames: [toys.example]
  rules: [{{backendRefs: [{{name: toystore, port: 80}}]}}]
---
apiVersion: v1
kind: Secret
metadata: {{name: alice, namespace: toys, labels: {{app: toystore}}}}
data: {{api_key: S0VZLU9GLUFMSUNF}}
---
apiVersion: apim.kuadrant.io/v1alpha1
kind: AuthPolicy
metadata: {{name: toystore, namespace: toys}}
spec:
  targetRef: {{group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}}
  authSchemes:
  - hosts: [toys.example]
    identity:
    - name: friends
      apiKey: {{labelSelectors: {{app: toystore}}}}
      credentials: {{in: authorization_header, keySelector: APIKEY}}
"""


class Services:
    """External authorizers with configured answers, which count their calls."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def ask(self, name: str, check: ProxyCheck) -> Answer:  # noqa: ARG002
        self.asked.append(name)
        answer = self.answers.get(name.partition(".")[0], Reply.ALLOW)
        if isinstance(answer, str) and answer == "raises":
            raise OSError("the network is down")
        return answer


def live_authorizer(
    services: Services | None = None, options: CheckOptions | None = None, *, live: bool = False
) -> LiveAuthorizer:
    manifests = read_manifests(["-"], Settings().enforced(), stdin=BytesIO(MANIFESTS.encode()))
    return LiveAuthorizer(Authority(manifests, live=live), Lock(), services or Services(), options)
